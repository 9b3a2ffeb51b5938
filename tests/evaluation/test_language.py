"""Scores of language models: minimal pairs, and what text costs."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard import cli
from regard.checkpoint.source import from_preset
from regard.checkpoint.write_folder import write_folder
from regard.errors import DataError, InputError
from regard.text.learn import train_tokenizer_from_texts

TEXTS = ["the cat sleeps on the mat", "the cats sleep", "a dog sleeps", "the dogs sleep on the mat"]
Capture = pytest.CaptureFixture[str]


def made(folder: Path, preset: str, kind: str) -> Path:
    """A folder with a language model that has opinions, and nothing that says how it was trained."""
    words = train_tokenizer_from_texts(TEXTS * 20, kind=kind, size=40 if kind == "wordpiece" else 270)
    heads = {"masked": 0} if "bert" in preset else {"language": 0}
    checkpoint = from_preset(preset, heads=heads, seed=0, vocabulary=words.size)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in checkpoint.network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    write_folder(folder, checkpoint, write_extra_files=words.save)
    return folder


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("models") / "masked", "tiny-bert", "wordpiece")


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("models") / "causal", "tiny-gpt2", "bpe")


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("models") / "recurrent", "tiny-lstm-language", "bpe")


def rows(path: Path, input_ids: Iterable[Any]) -> Path:
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in input_ids))
    return path


def pair(good: str, bad: str, kind: str = "number") -> dict[str, str]:
    return {"sentence_good": good, "sentence_bad": bad, "field": "syntax", "UID": kind}


PAIRS = [
    pair(TEXTS[0], TEXTS[1]),
    pair(TEXTS[1], TEXTS[0]),
    pair(TEXTS[2], TEXTS[3], "order"),
    pair(TEXTS[3], TEXTS[0], "order"),
    pair(TEXTS[2], TEXTS[1], "order"),
]


@pytest.mark.parametrize("model", ["masked", "causal", "recurrent"])
def test_pairs_are_recognized_and_scored(model: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder, data = request.getfixturevalue(model), rows(tmp_path / "pairs.jsonl", PAIRS)
    result = regard.evaluate(folder, data, output=tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [one["kind"] for one in lines] == [one["UID"] for one in PAIRS]
    for one in lines:
        assert one["preferred"] == ("good" if one["cost_good"] < one["cost_bad"] else "bad")
    assert lines[0]["preferred"] != lines[1]["preferred"]  # the same two sentences
    right = [one["preferred"] == "good" for one in lines]
    values = {name: score.value for name, score in result.scores.items()}
    expected = {"accuracy": sum(right) / 5, "accuracy number": 0.5, "accuracy order": sum(right[2:]) / 3}
    assert values == pytest.approx(expected)
    assert (result.task, result.rows, result.main) == ("minimal", 5, "accuracy")
    assert "jsonl for minimal (good=sentence_good, bad=sentence_bad, kind=UID)" in result.data
    assert regard.evaluate(folder, data, batch_tokens=8).scores == result.scores


def test_pairs_of_several_files_and_of_other_columns(causal: Path, tmp_path: Path) -> None:
    for part in range(2):
        rows(tmp_path / f"part{part}.jsonl", PAIRS[part::2])
    whole = regard.evaluate(causal, str(tmp_path / "part*.jsonl"))
    assert whole.rows == 5
    table = [",".join((*TEXTS[:2], "x")), ",".join((*TEXTS[2:], "y"))]
    data = rows(tmp_path / "pairs.csv", ["right,wrong,what", *table])
    result = regard.evaluate(causal, data, columns={"good": "right", "bad": "wrong", "kind": "what"})
    assert list(result.scores) == ["accuracy", "accuracy x", "accuracy y"]


def test_pairs_from_stdin(causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = "".join(json.dumps(one) + "\n" for one in PAIRS)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(sent.encode())))
    assert regard.evaluate(causal, "-").rows == 5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"pairs\.jsonl line 2, column 2: is not JSON"),
        ('{"sentence_good": "a"}', r'line 2: there is no "sentence_bad" \(there is sentence_good\)'),
        ('{"sentence_good": "a", "sentence_bad": 3}', r"line 2, column sentence_bad: is 3 \(int\); expected a text"),
        ('{"sentence_good": " ", "sentence_bad": "a"}', r"line 2, column sentence_good: there is no sentence"),
        ('{"sentence_good": "a", "sentence_bad": "a"}', r"line 2: the two sentences are the same"),
    ],
)
def test_a_line_that_is_wrong_is_named_or_skipped(causal: Path, tmp_path: Path, line: str, message: str) -> None:
    data = rows(tmp_path / "pairs.jsonl", [PAIRS[0], line, PAIRS[2]])
    with pytest.raises(DataError, match=message):
        regard.evaluate(causal, data)
    result = regard.evaluate(causal, data, skip_bad=tmp_path / "bad.jsonl")
    assert (result.rows, result.bad) == (2, 1)
    assert json.loads((tmp_path / "bad.jsonl").read_text())["line"] == 2


def test_the_error_of_a_model_without_tokenizer_names_what_it_can_do(trained: Path, tmp_path: Path) -> None:
    data = rows(tmp_path / "pairs.jsonl", PAIRS)
    with pytest.raises(
        InputError, match=r"minimal pairs, but .* no masked or causal language model head.*model\.predict\(texts\)"
    ):
        regard.evaluate(trained, data)
    with pytest.raises(InputError, match=r"no masked or causal language model head.*can do: model\.embed\(texts\)"):
        regard.evaluate("minilm", data)


def test_pairs_on_the_command_line(capsys: Capture, masked: Path, tmp_path: Path) -> None:
    data = rows(tmp_path / "pairs.jsonl", PAIRS)
    assert cli.main(["evaluate", str(masked), str(data)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in table[1:4]] == ["accuracy", "accuracy number", "accuracy order"]
    assert cli.main(["evaluate", str(masked), str(data), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["scores"]) == ["accuracy", "accuracy number", "accuracy order"]


def sliding(theirs: Any, ids: list[int], *, window: int, stride: int) -> tuple[float, int]:
    """The usual recipe for perplexity with transformers, its sums exact."""
    total, count, before = 0.0, 0, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + window, len(ids))
        input_ids = torch.tensor([ids[begin:end]])
        target = input_ids.clone()
        target[:, : -(end - before)] = -100
        scored = int((target[:, 1:] != -100).sum())
        with torch.no_grad():
            total += float(theirs(input_ids, labels=target).loss) * scored
        count, before = count + scored, end
        if end == len(ids):
            break
    return total, count


@pytest.mark.parametrize(("window", "stride"), [(32, 32), (32, 8), (24, 23), (64, 1)])
def test_sliding_windows_are_those_of_the_transformers_guide(
    causal: Path, tmp_path: Path, window: int, stride: int
) -> None:
    import transformers

    text = "\n\n".join(TEXTS[number % 4] + "." for number in range(12)) + "\n"
    (tmp_path / "text.txt").write_text(text)
    model = regard.load(causal, device="cpu")
    assert model.tokenizer is not None
    ids = list(model.tokenizer.encode(text).ids)
    theirs = transformers.GPT2LMHeadModel.from_pretrained(causal).eval()
    total, count = sliding(theirs, ids, window=window, stride=stride)
    result = regard.evaluate(
        model, tmp_path / "text.txt", window=window, overlap=1 - stride / window, output=tmp_path / "a.jsonl"
    )
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert sum(one["count"] for one in lines) == count
    assert result.scores["nll"].value == pytest.approx(total / count, rel=1e-5)
    assert (result.task, result.main, result.unit, result.rows) == ("causal", "perplexity", "windows", len(lines))
    again = regard.evaluate(model, tmp_path / "text.txt", window=window, overlap=1 - stride / window, batch_tokens=40)
    assert again.scores["nll"].value == pytest.approx(result.scores["nll"].value, rel=1e-6)
    assert count == len(ids) - (math.ceil(len(ids) / window) if stride == window else 1)
    assert result.scores["perplexity"].value == pytest.approx(math.exp(total / count), rel=1e-4)
    if stride < window:  # each is counted by what was scored of it
        scored = text.split()[1:], text[len(model.tokenizer.decode(ids[:1])) :]
        assert result.scores["word_perplexity"].value == pytest.approx(math.exp(total / len(scored[0])), rel=1e-4)
        bits = total / math.log(2) / len(scored[1])
        assert result.scores["bits_per_character"].value == pytest.approx(bits, rel=1e-5)


def test_windows_that_cannot_be_used_are_refused(causal: Path, tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text("\n".join(TEXTS * 6))
    assert regard.evaluate(causal, data).rows > 1  # it has places for fewer tokens
    with pytest.raises(InputError, match=r"window is 9999; use at least 2 tokens, and at most \d+"):
        regard.evaluate(causal, data, window=9999)
    data.write_text(".")
    with pytest.raises(DataError, match="at least two tokens"):
        regard.evaluate(causal, data, output=tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()


def test_text_on_the_command_line(capsys: Capture, causal: Path, tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text("\n".join(TEXTS * 6))
    argv = ["evaluate", str(causal), str(data), "--window", "32"]
    assert cli.main([*argv, "--overlap", "0.75"]) == 0
    table = capsys.readouterr().out
    assert [line.split()[0] for line in table.splitlines()[1:5]] == [
        "perplexity",
        "nll",
        "word_perplexity",
        "bits_per_character",
    ]
    assert " windows in " in table


def test_a_masked_model_from_elsewhere_guesses_hidden_words(masked: Path, trained: Path, tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text("\n\n".join(TEXTS * 30))
    result = regard.evaluate(masked, data)
    assert (result.task, result.rows) == ("masked", 120)
    assert list(result.scores) == ["masked_accuracy", "perplexity", "nll"]
    assert regard.evaluate(masked, data).scores == result.scores
    with pytest.raises(InputError, match="overlap is for causal language models"):
        regard.evaluate(masked, data, overlap=0.5)
    with pytest.raises(InputError, match="window is for language models"):
        regard.evaluate(trained, data, window=8)


def test_a_line_that_is_no_text(causal: Path, tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_bytes(b"the cat sleeps\n\xff\xfe\xff\nthe cats sleep\n")
    with pytest.raises(DataError, match=r"text\.txt line 2.*not UTF-8"):
        regard.evaluate(causal, data)
    result = regard.evaluate(causal, data, skip_bad=tmp_path / "bad.jsonl")
    assert (result.rows, result.bad) == (1, 1)


def test_a_recurrent_model_pays_for_text_too(recurrent: Path, tmp_path: Path) -> None:
    """It has places for any number of tokens, so a short text is one window."""
    data = tmp_path / "text.txt"
    data.write_text("\n".join(TEXTS * 6))
    model = regard.load(recurrent, device="cpu")
    result = regard.evaluate(model, data)
    assert model.tokenizer is not None
    ids = list(model.tokenizer.encode(data.read_text(), special=False).ids)
    logits = model.outputs([ids])[0].logits
    assert logits is not None
    expected = torch.nn.functional.cross_entropy(logits[:-1].float(), torch.tensor(ids[1:]))
    assert (result.rows, result.unit) == (1, "windows")
    assert result.scores["nll"].value == pytest.approx(float(expected), rel=1e-5)
