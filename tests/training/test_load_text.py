"""Plain text for pretraining: its tokenizer, its token store and its validation documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.data.corpus.token_store import Corpus
from regard.errors import InputError
from regard.text.learn import train_tokenizer, train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer
from regard.training.engine.distributed.world import World
from regard.training.load_text import TextData, TextFiles, check_objective, load_text, text_tokenizer
from regard.training.output.metrics_log import TrainingEvent
from regard.training.run import RunContext
from regard.training.settings import Settings

TEXT = "one\ntwo\n\nthree\n\nfour\n\n" * 10


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def characters(text: Path) -> Tokenizer:
    return train_tokenizer([text], kind="char", size=60)


def files(text: Path, **options: Any) -> TextFiles:
    return TextFiles(**{"train": [text], "dev": None, "objective": "causal", "store": text.parent / "store", **options})


def load(files: TextFiles, tokenizer: Tokenizer, **settings: Any) -> TextData:
    context = RunContext(files.store.parent, torch.device("cpu"), World())
    return load_text(files, tokenizer, Settings(**settings), context)


def test_a_fraction_of_the_documents_is_split_off(text: Path, characters: Tokenizer) -> None:
    data = load(files(text), characters, dev_fraction=0.2)
    train, dev = set(data.train.documents.tolist()), set(data.dev.documents.tolist())  # type: ignore[union-attr]
    assert train | dev == set(range(30))
    assert not train & dev
    assert 3 <= len(dev) <= 9
    assert data.split_off
    assert data.reason.startswith("plain text: 30 documents, ")


def test_documents_to_validate_on_can_be_given(text: Path, characters: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("two\n\nthree\n")
    data = load(files(text, dev=[tmp_path / "dev.txt"]), characters, dev_fraction=0.2)
    assert (len(data.train), len(data.dev), data.split_off) == (30, 2, False)


def test_nothing_is_validated_with_a_fraction_of_zero(text: Path, characters: Tokenizer) -> None:
    data = load(files(text), characters, dev_fraction=0.0)
    assert (len(data.train), data.dev) == (30, ())


def test_the_fingerprint_is_that_of_files_and_tokenizer(text: Path, characters: Tokenizer, tmp_path: Path) -> None:
    first = load(files(text), characters).fingerprint
    assert load(files(text, store=tmp_path / "again"), characters).fingerprint == first
    other = train_tokenizer_from_texts([TEXT, "and more letters"], kind="char", size=60)
    assert load(files(text, store=tmp_path / "other"), other).fingerprint != first
    text.write_text(TEXT + "five\n")
    assert load(files(text, store=tmp_path / "more"), characters).fingerprint != first


def test_a_vocabulary_without_an_end_token_keeps_the_blank_line(text: Path, characters: Tokenizer) -> None:
    assert characters.eos is None
    load(files(text), characters, dev_fraction=0.0)
    tokens = Corpus.open(text.parent / "store" / "train").tokens
    first = "one\ntwo\n\nthree\n\nfour\n\n"
    assert characters.decode(tokens[: len(first)].tolist()) == first


def test_documents_end_with_the_end_token(text: Path) -> None:
    words = train_tokenizer([text], kind="bpe", size=262)
    assert words.eos is not None
    load(files(text), words, dev_fraction=0.0)
    corpus = Corpus.open(text.parent / "store" / "train")
    assert {int(corpus.tokens[end - 1]) for end in corpus.bounds[1:]} == {words.eos}


def test_reading_is_reported_by_the_main_process(text: Path, characters: Tokenizer, tmp_path: Path) -> None:
    events: list[TrainingEvent] = []
    context = RunContext(tmp_path, torch.device("cpu"), World(), progress=events.append)
    load_text(files(text), characters, Settings(), context)
    assert {event.kind for event in events} == {"read"}
    assert events[-1].done == text.stat().st_size


def test_the_store_is_removed_but_not_what_is_beside_it(text: Path, characters: Tokenizer) -> None:
    source = files(text)
    load(source, characters)
    (source.store / "notes.txt").write_text("mine")
    source.remove_store()
    assert [path.name for path in source.store.iterdir()] == ["notes.txt"]
    (source.store / "notes.txt").unlink()
    source.remove_store()
    assert not source.store.exists()


def test_a_vocabulary_is_learned_from_the_files(text: Path) -> None:
    source = files(text, objective="mlm")
    words = text_tokenizer(source, preset="tiny-bert", start=None, tokenizer=None)
    assert words.mask is not None
    assert words.size <= 100
    assert words.decode(words.encode("three").ids[1:-1]) == "three"


def test_a_decoder_reads_text_without_special_tokens(text: Path) -> None:
    """A vocabulary of BERT puts [CLS] and [SEP] around a text."""
    words = train_tokenizer([text], size=30)
    assert words.surrounding_ids != ((), ())
    causal = text_tokenizer(files(text), preset="tiny-gpt2", start=None, tokenizer=words)
    assert causal.surrounding_ids == ((), ())
    masked = text_tokenizer(files(text, objective="mlm"), preset="tiny-bert", start=None, tokenizer=words)
    assert masked is words


@pytest.mark.parametrize(
    ("preset", "objective", "message"),
    [
        ("tiny-gpt2", "mlm", r'"mlm" is for networks of kind encoder, but this one \(gpt2\) is of kind decoder'),
        ("tiny-bert", "causal", r"is of kind encoder\. Use objective mlm\."),
        ("tiny-roberta", "mlm+nsp", r"family roberta have no head for next sentences\. Use objective mlm\."),
        ("tiny-elmo", "mlm", r"family elmo have no head for masked tokens\. Use objective bidirectional\."),
        ("tiny-t5", "mlm", r"is of kind encoder-decoder\. It has no pretraining here\."),
    ],
)
def test_objectives_that_a_network_cannot_learn(preset: str, objective: str, message: str) -> None:
    shape = from_preset(preset, weights=False)
    with pytest.raises(InputError, match=message):
        check_objective(shape.family, shape.config, objective)


@pytest.mark.parametrize(
    ("preset", "objective"),
    [("tiny-bert", "mlm"), ("tiny-bert", "mlm+nsp"), ("tiny-gpt2", "causal"), ("tiny-elmo", "bidirectional")],
)
def test_objectives_that_a_network_can_learn(preset: str, objective: str) -> None:
    shape = from_preset(preset, weights=False)
    check_objective(shape.family, shape.config, objective)
