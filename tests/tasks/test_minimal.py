import json
from pathlib import Path

import pytest
import torch
import transformers

from regard.checkpoint.folder import read_folder
from regard.checkpoint.source import from_preset
from regard.errors import DataError, InputError
from regard.tasks.minimal import MinimalPair, likelihoods, minimal_pairs, read_minimal_pairs
from regard.tasks.task import Reading
from regard.text.learn import learn_from

TEXTS = ["the cat sleeps on the mat", "the cats sleep", "a dog"]


@pytest.fixture
def masked(tmp_path: Path) -> tuple[Reading, transformers.BertForMaskedLM, Path]:
    words = learn_from(TEXTS * 20, size=40)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=words.size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4)
    model.save_pretrained(tmp_path)
    return Reading(words, read_folder(tmp_path).config), model, tmp_path


def test_pseudo_likelihoods_hide_one_token_at_a_time(
    masked: tuple[Reading, transformers.BertForMaskedLM, Path],
) -> None:
    reading, theirs, folder = masked
    network = read_folder(folder).network
    expected = []
    for text in TEXTS:
        ids = torch.tensor(reading.tokenizer.encode(text).ids)
        total = 0.0
        for place in range(1, len(ids) - 1):
            hidden = ids.clone()
            hidden[place] = reading.tokenizer.mask or 0
            with torch.no_grad():
                total += float(theirs(hidden[None]).logits[0, place].log_softmax(0)[ids[place]])
        expected.append(total)
    for tokens in (1, 30, 8192):
        assert likelihoods(network, reading, TEXTS, batch_tokens=tokens) == pytest.approx(expected, abs=1e-4)


def test_likelihoods_of_a_causal_model(tmp_path: Path) -> None:
    words = learn_from(TEXTS * 20, kind="bpe", size=262)
    assert words.bos is not None
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=words.size, n_embd=32, n_layer=2, n_head=2, n_positions=64)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path)
    found = read_folder(tmp_path)
    expected = []
    for text in TEXTS:
        ids = torch.tensor([[words.bos, *words.encode(text).ids]])
        with torch.no_grad():
            expected.append(-float(theirs(ids, labels=ids).loss) * (ids.shape[1] - 1))
    assert likelihoods(found.network, Reading(words, found.config), TEXTS) == pytest.approx(expected, abs=1e-4)


def test_pairs_are_counted_over_all_and_by_kind(masked: tuple[Reading, transformers.BertForMaskedLM, Path]) -> None:
    reading, _, folder = masked
    network = read_folder(folder).network
    likely = likelihoods(network, reading, TEXTS[:2])
    good, bad = (0, 1) if likely[0] > likely[1] else (1, 0)
    right, wrong = (TEXTS[good], TEXTS[bad]), (TEXTS[bad], TEXTS[good])
    pairs = [MinimalPair(*right, "number"), MinimalPair(*right, "number"), MinimalPair(*wrong, "order")]
    found = minimal_pairs(network, reading, pairs)
    assert {name: score.value for name, score in found.scores.items()} == pytest.approx(
        {"accuracy": 2 / 3, "accuracy number": 1.0, "accuracy order": 0.0}
    )
    assert found.rows == 3
    assert found.scores["accuracy"].low < 2 / 3 < found.scores["accuracy"].high
    assert set(minimal_pairs(network, reading, pairs[:2]).scores) == {"accuracy"}


def test_pairs_are_read_from_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"sentence_good": "a b", "sentence_bad": "b a", "UID": "order"},
        {"sentence_good": "c", "sentence_bad": "d"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert [(pair.good, pair.bad, pair.kind) for pair in read_minimal_pairs(path)] == [
        ("a b", "b a", "order"),
        ("c", "d", None),
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", r"pairs.jsonl line 2.*not JSON"),
        ('{"sentence_good": "a"}', r"line 2.*sentence_bad.*no sentence"),
        ('{"sentence_good": "a", "sentence_bad": 3}', r"line 2.*sentence_bad"),
        ('{"sentence_good": "a", "sentence_bad": "a"}', r"line 2.*the same"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"sentence_good": "a", "sentence_bad": "b"}\n' + line)
    with pytest.raises(DataError, match=says):
        read_minimal_pairs(path)


def test_what_cannot_be_scored_is_said(tmp_path: Path) -> None:
    words = learn_from(TEXTS * 20, size=40)
    bare = from_preset("tiny-bert", heads={})
    with pytest.raises(InputError, match="no head for words"):
        minimal_pairs(bare.network, Reading(words, bare.config), [MinimalPair("a", "b")])
    with pytest.raises(InputError, match="at least one"):
        minimal_pairs(bare.network, Reading(words, bare.config), [])
    known = from_preset("tiny-bert", heads={"masked": 0})
    with pytest.raises(DataError, match="tokens"):
        minimal_pairs(known.network, Reading(words, known.config, window=4), [MinimalPair(TEXTS[0], "a")])
    (tmp_path / "none.jsonl").write_text("\n")
    with pytest.raises(InputError, match="holds no pair"):
        read_minimal_pairs(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        read_minimal_pairs(tmp_path / "no.jsonl")
