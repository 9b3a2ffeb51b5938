"""Pretraining from text to a folder: golden losses, what is learned, exact resume, and what opens elsewhere."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from regard import create, evaluate, load, samples
from regard.errors import FolderError, InputError
from regard.text.learn import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.training.output.metrics_log import TrainingEvent
from regard.training.pretrain import pretrain
from regard.training.result import PretrainResult

CORPUS = samples.path("corpus")
SMALL: dict[str, Any] = {"dropout": 0.0, "batch_tokens": 512, "window": 64, "device": "cpu"}
KINDS = {"mlm": "tiny-bert", "mlm+nsp": "tiny-bert", "causal": "tiny-gpt2"}
CLASSES = {"mlm": "BertForMaskedLM", "mlm+nsp": "BertForPreTraining", "causal": "GPT2LMHeadModel"}
# fmt: off
GOLDEN = {
    "mlm": [
        3.71213, 3.63852, 3.56459, 3.44345, 3.42564, 3.24164, 3.22722, 3.11334, 3.24384, 3.12918, 3.11883,
        2.98955, 3.03048, 2.95544, 3.16012, 3.07735, 2.88521, 2.78894, 2.78435, 3.08335,
    ],
    "mlm+nsp": [
        7.08956, 7.02844, 7.07233, 6.96035, 7.00051, 7.01911, 6.83146, 6.80676, 6.708, 6.82834, 6.69608,
        6.62743, 6.76441, 6.56755, 6.55211, 6.50139, 6.69334, 6.60782, 6.56796, 6.21724,
    ],
    "causal": [
        3.7193, 3.64989, 3.53397, 3.44459, 3.35289, 3.26717, 3.19335, 3.11929, 3.133, 3.07183, 3.04845,
        2.9889, 2.98719, 2.92112, 2.94787, 2.98468, 2.99024, 3.01915, 2.89022, 2.88821,
    ],
}
# fmt: on


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums in one order, so that weights can be compared to the last bit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def words() -> dict[str, Tokenizer]:
    pieces, signs = train_tokenizer([CORPUS], size=600), train_tokenizer([CORPUS], kind="char", size=60, lowercase=True)
    return {"mlm": signs, "mlm+nsp": pieces, "causal": signs}


def run(objective: Any, out: Path, words: dict[str, Tokenizer], **arguments: Any) -> PretrainResult:
    options = {"preset": KINDS.get(objective), "tokenizer": words.get(objective), **SMALL, **arguments}
    return pretrain([CORPUS], objective=objective, out=out, **options)


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "log"]


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.parametrize("objective", GOLDEN)
def test_twenty_steps_have_the_losses_they_always_had(
    objective: str, tmp_path: Path, words: dict[str, Tokenizer]
) -> None:
    run(objective, tmp_path / "run", words, steps=20, lr=5e-3, warmup=0.1, adam_eps=1e-8, log_every=1, dev_fraction=0.0)
    assert losses(tmp_path / "run") == pytest.approx(GOLDEN[objective], abs=1e-4)


def test_hidden_letters_are_learned(tmp_path: Path, words: dict[str, Tokenizer]) -> None:
    """Three in ten hidden letters of held-out text come back; the commonest letter alone gives two."""
    result = run(
        "mlm", tmp_path / "run", words, preset="tiny-modernbert", steps=120, lr=1e-2, batch_tokens=1024, seed=1
    )
    assert result.scores["masked_accuracy"].value > 0.29
    assert result.scores["perplexity"].value < 14.5
    assert result.baseline["masked_accuracy"] == pytest.approx(0.19, abs=0.02)
    assert result.baseline["perplexity"] == pytest.approx(18, abs=1)


def test_next_letters_are_learned(tmp_path: Path, words: dict[str, Tokenizer]) -> None:
    """Held-out text has a perplexity of less than 13 a letter; letters by their counts have 18."""
    result = run("causal", tmp_path / "run", words, steps=80, lr=1e-2, batch_tokens=1024)
    assert result.scores["perplexity"].value < 13
    assert result.scores["perplexity"].low < result.scores["perplexity"].value < result.scores["perplexity"].high
    assert result.baseline["perplexity"] == pytest.approx(18, abs=1)
    assert result.json()["task"] == "causal"


def test_next_sentences_are_learned_with_hidden_words(tmp_path: Path) -> None:
    """A question never follows: that alone tells seven in ten pairs apart. Four in ten hidden words come back."""
    nouns = ("boat", "wave", "salt", "harbour", "net", "gull", "barley", "plough", "cow", "hay", "field", "barn")
    texts = [f"where is the {one} of the {two}?\nit lies here, by the {two}." for one in nouns for two in nouns]
    (tmp_path / "text.txt").write_text("\n\n".join(texts), encoding="utf-8")
    files = [tmp_path / "text.txt"]
    options = {**SMALL, "dev_fraction": 0.2, "warmup": 0.1}
    words, out = train_tokenizer(files, size=80), tmp_path / "run"
    result = pretrain(
        files, objective="mlm+nsp", preset="tiny-bert", tokenizer=words, out=out, steps=100, lr=1e-2, **options
    )
    assert result.scores["masked_accuracy"].value > 0.4
    assert result.scores["next_accuracy"].value > 0.65 > result.baseline["next_accuracy"]


@pytest.mark.parametrize("objective", KINDS)
def test_the_folder_opens_in_transformers_and_here(objective: str, tmp_path: Path, words: dict[str, Tokenizer]) -> None:
    out = tmp_path / "run"
    result = run(objective, out, words, steps=3, lr=1e-3)
    kind = getattr(transformers, CLASSES[objective])
    theirs, options = kind.from_pretrained(out, output_loading_info=True)
    assert not options["missing_keys"]
    assert not options["unexpected_keys"]
    assert json.loads((out / "config.json").read_text())["architectures"] == [CLASSES[objective]]
    ours = load(out, device="cpu")
    ids = [words[objective].encode("the houses are made of dry stone").ids]
    mine = ours.outputs(ids)[0]
    other = theirs.eval()(torch.tensor(ids))
    logits = other.prediction_logits if objective == "mlm+nsp" else other.logits
    torch.testing.assert_close(mine.logits, logits[0], atol=1e-5, rtol=1e-5)
    if objective == "mlm+nsp":
        torch.testing.assert_close(mine.next_sentence, other.seq_relationship_logits[0], atol=1e-5, rtol=1e-5)
    stored = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert stored["objective"] == objective
    assert stored["baseline"] == result.baseline
    assert stored["data"]["dev_rows"] > 0
    assert not (tmp_path / "run.corpus").exists()
    assert result.rows > 100
    names = {"mlm": ["masked_accuracy"], "mlm+nsp": ["masked_accuracy", "next_accuracy"], "causal": ["perplexity"]}
    assert set(names[objective]) <= set(result.scores)


class Killed(Exception):
    """As if the power went."""


@pytest.mark.parametrize("objective", ["mlm+nsp", "causal"])
def test_a_training_that_was_killed_goes_on_to_the_same_weights(
    objective: str, tmp_path: Path, words: dict[str, Tokenizer]
) -> None:
    options = {"steps": 24, "lr": 3e-3, "save_every": 8, "eval_every": 12, "log_every": 1, "dropout": 0.1}

    def kill(event: TrainingEvent) -> None:
        if event.kind == "log" and event.step == 19:
            raise Killed

    whole = run(objective, tmp_path / "whole", words, **options)
    with pytest.raises(Killed):
        run(objective, tmp_path / "part", words, progress=kill, **options)
    assert (tmp_path / "part.corpus" / "train").is_dir()
    again = run(objective, tmp_path / "part", words, resume=True, **options)
    assert digest(tmp_path / "part") == digest(tmp_path / "whole")
    assert again.scores == whole.scores
    assert losses(tmp_path / "part") == losses(tmp_path / "whole")


def test_a_training_stopped_while_it_read_the_text_begins_again(tmp_path: Path, words: dict[str, Tokenizer]) -> None:
    def kill(event: TrainingEvent) -> None:
        if event.kind == "read":
            raise Killed

    with pytest.raises(Killed):
        run("causal", tmp_path / "run", words, steps=2, progress=kill)
    assert run("causal", tmp_path / "run", words, steps=2, resume=True).steps == 2


def test_resuming_a_finished_pretraining_returns_its_result(tmp_path: Path, words: dict[str, Tokenizer]) -> None:
    objective = "causal"
    first = run(objective, tmp_path / "run", words, steps=2)
    weights = digest(tmp_path / "run")
    again = run(objective, tmp_path / "run", words, steps=2, resume=True)
    assert replace(again, seconds=first.seconds) == first
    assert digest(tmp_path / "run") == weights
    assert not (tmp_path / "run.corpus").exists()
    with pytest.raises(FolderError, match="its training ended, and nothing is left to resume; it had other settings"):
        run(objective, tmp_path / "run", words, steps=3, resume=True)
    assert not (tmp_path / "run.corpus").exists()


def test_a_model_goes_on_with_ones_own_text(tmp_path: Path, words: dict[str, Tokenizer]) -> None:
    """Domain adaptation: the same vocabulary and the same shape, other weights."""
    run("mlm", tmp_path / "first", words, steps=5, lr=1e-3)
    (tmp_path / "own.txt").write_text("\n\n".join(["barley soup with barley bread"] * 30), encoding="utf-8")
    options = {**SMALL, "window": None}
    result = pretrain(
        [tmp_path / "own.txt"], start=tmp_path / "first", out=tmp_path / "own", steps=40, lr=1e-2, **options
    )
    assert result.scores["perplexity"].value < 20
    first, own = (load(tmp_path / name, device="cpu") for name in ("first", "own"))
    assert own.config == first.config
    assert own.info().task == "masked"
    assert np.abs(own.embed(["barley"]) - first.embed(["barley"])).max() > 1e-3


def test_a_vocabulary_is_learned_by_default_and_a_given_store_is_kept(tmp_path: Path) -> None:
    options = {"preset": "bert-tiny", "steps": 2, **SMALL, "dev": [CORPUS]}
    result = pretrain([CORPUS], out=tmp_path / "run", store=tmp_path / "tokens", **options)
    assert (tmp_path / "tokens" / "train" / "tokens.bin").exists()
    assert (tmp_path / "tokens" / "dev" / "tokens.bin").exists()
    ours = load(tmp_path / "run", device="cpu")
    assert ours.tokenizer is not None
    assert 1000 <= ours.tokenizer.size == ours.config.vocabulary < 4000
    assert result.scores
    assert not json.loads((tmp_path / "run" / "run.json").read_text())["data"]["dev_split_off"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "mlm-nsp"}, 'objective "mlm-nsp" is not known. Did you mean "mlm+nsp"?'),
        ({"preset": None}, "neither of preset and start"),
        ({"start": "minilm"}, "both of preset and start"),
        ({"preset": None, "start": "tiny-bert", "tokenizer": None}, "no weights were published for it"),
        ({"preset": None, "start": "minilm"}, "has its own tokenizer"),
        ({"objective": "causal"}, "Use objective mlm"),
        ({"mask_unit": "letter"}, 'mask_unit "letter" is not known'),
        ({"mask_unit": "word"}, "do not mark word starts"),
        ({"learning": 3}, 'there is no setting "learning"'),
        ({"label_smoothing": 0.1}, "label_smoothing is for regard train"),
        ({"vocabularies": "separate"}, "vocabularies is for regard train"),
    ],
)
def test_invalid_arguments_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path, words: dict[str, Tokenizer]
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        run(options.pop("objective", "mlm"), tmp_path / "run", words, **{"preset": "tiny-bert", **options})


def test_files_that_are_missing_and_folders_that_are_full_are_reported(
    tmp_path: Path, words: dict[str, Tokenizer]
) -> None:
    with pytest.raises(InputError, match="is not a file"):
        pretrain([tmp_path / "no.txt"], out=tmp_path / "run", preset="tiny-bert", tokenizer=words["mlm"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(FolderError, match="exists and is not empty"):
        run("mlm", tmp_path / "full", words)
    (tmp_path / "one.txt").write_text("only one document.\nof two sentences.")
    with pytest.raises(InputError, match="1 document, too few to use 2 for validation"):
        pretrain(
            [tmp_path / "one.txt"],
            out=tmp_path / "one",
            objective="mlm+nsp",
            preset="tiny-bert",
            tokenizer=words["mlm+nsp"],
        )


def test_whole_words_are_pretrained_on(tmp_path: Path, words: dict[str, Tokenizer]) -> None:
    """The same places of the same text as single tokens, but other losses: what is hidden differs."""
    options = {"tokenizer": words["mlm+nsp"], "preset": "tiny-bert", "steps": 6}
    result = run("mlm+nsp", tmp_path / "words", words, **options, mask_unit="word")
    run("mlm+nsp", tmp_path / "tokens", words, **options)
    assert losses(tmp_path / "words") != losses(tmp_path / "tokens")
    assert result.scores["masked_accuracy"].value >= 0
    stored = json.loads((tmp_path / "words" / "run.json").read_text())
    assert stored["task_settings"]["masks"]["unit"] == "word"
    (tmp_path / "text.txt").write_text(CORPUS.read_text(encoding="utf-8")[:4000], encoding="utf-8")
    assert evaluate(load(tmp_path / "words", device="cpu"), tmp_path / "text.txt").scores["perplexity"].value > 1


def test_text_too_short_to_be_scored_is_found_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("[SEP] [MASK]")
    events: list[TrainingEvent] = []
    with pytest.raises(InputError, match=r"too short to be scored: .* dev_fraction=0"):
        pretrain([CORPUS], out=tmp_path / "run", preset="tiny-bert", dev=[tmp_path / "dev.txt"], progress=events.append)
    assert not any(event.step for event in events if event.kind != "read")


@pytest.mark.parametrize("preset", ["tiny-roberta", "tiny-modernbert"])
def test_byte_level_encoders_learn_a_vocabulary_with_a_mask_token(preset: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(
        "\n\n".join(f"The {word} stood beside the old mill." for word in ["cart", "horse", "dog", "cow"]) * 30
    )
    pretrain([text], preset=preset, out=tmp_path / "out", steps=2, batch_tokens=128, device="cpu")
    model = load(tmp_path / "out", device="cpu")
    assert model.tokenizer is not None
    mask = model.tokenizer.backend.id_to_token(model.tokenizer.special["mask"])
    assert model.fill(f"The {mask} stood beside the old mill.")
    transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out")


def test_a_new_head_is_reported(tmp_path: Path) -> None:
    text = [f"The old man went to market {number}.\n\n" for number in range(40)]
    (tmp_path / "text.txt").write_text("".join(text))
    words = train_tokenizer([tmp_path / "text.txt"], kind="wordpiece", size=50)
    create("tiny-bert", tokenizer=words).save(tmp_path / "plain")
    mark_as_trained(tmp_path / "plain")
    events: list[TrainingEvent] = []
    options: dict[str, Any] = {"objective": "mlm", "steps": 1, "batch_tokens": 128, "device": "cpu"}
    result = pretrain(
        [tmp_path / "text.txt"], start=tmp_path / "plain", out=tmp_path / "run", progress=events.append, **options
    )
    assert result.new_heads == ("masked-token head",)
    begin = next(event for event in events if event.kind == "begin")
    (line,) = (line for line in begin.values["lines"] if line.startswith("head: "))
    assert "has no masked-token head, so it starts randomly initialized. The first perplexity" in line
    assert f"a vocabulary of {words.size:,} tokens" in line
    assert json.loads((tmp_path / "run" / "run.json").read_text())["new_heads"] == ["masked-token head"]
    assert "randomly initialized at its start: masked-token head." in (tmp_path / "run" / "README.md").read_text()
    again = pretrain([tmp_path / "text.txt"], start=tmp_path / "run", out=tmp_path / "more", **options)
    assert again.new_heads == ()
    assert "randomly initialized" not in (tmp_path / "more" / "README.md").read_text()


def mark_as_trained(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["regard"]
    (folder / "config.json").write_text(json.dumps(config))
