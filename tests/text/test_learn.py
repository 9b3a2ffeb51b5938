"""Learned vocabularies: transformers reads them, offsets are exact, memory and time are limited."""

from __future__ import annotations

import gzip
import lzma
import random
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from tests.references import transformers
from tests.text.corpus import CORPUS, NEAR_TEXT, OPEN_TEXT, SIZES, TEXTS, train_on_corpus, trained

from regard import cli
from regard.errors import InputError
from regard.text.learn import KINDS, train_tokenizer, train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_and_sizes(kind: str) -> None:
    result = trained(kind)
    assert result.size == SIZES[kind] or kind in ("char", "word")
    bert = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    other = {"bpe": {"bos": 0, "eos": 0}, "unigram": {"pad": 0, "eos": 1, "unk": 2}}
    roles = {**dict.fromkeys(("wordpiece", "char", "word"), bert), **other}
    assert result.special == roles[kind]
    frames: dict[str, Any] = {"bpe": ((), ()), "unigram": ((), (1,))}
    assert result.surrounding_ids == frames.get(kind, ((2,), (3,)))


@pytest.mark.parametrize(("kind", "name"), [("wordpiece", "roberta"), ("bpe", "robreta")])
def test_invalid_special_tokens(kind: str, name: str) -> None:
    with pytest.raises(InputError, match="special tokens"):
        train_on_corpus(kind, special_tokens=name)


@pytest.mark.parametrize("kind", KINDS)
def test_lowercase_or_cased(kind: str) -> None:
    small, large = train_on_corpus(kind, lowercase=True, size=SIZES[kind] - 10), train_on_corpus(kind, lowercase=False)
    assert small.encode("THE MARKET") == small.encode("the market")
    assert large.encode("THE MARKET") != large.encode("the market")
    default = trained(kind).encode("THE") == trained(kind).encode("the")
    assert default == (kind == "wordpiece")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [len(CORPUS), 700])
def test_the_same_text_gives_the_same_ids(kind: str, length: int) -> None:
    """Several times over, for the trainers' hash tables are in another order each time."""
    size = {"bpe": 300, "unigram": 80}.get(kind, 150)
    messages = {train_tokenizer_from_texts([CORPUS[:length]], kind=kind, size=size).backend.to_str() for _ in range(4)}
    assert len(messages) == 1


def test_another_process_gives_the_same_ids(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    start = "from regard.text.learn import train_tokenizer"
    code = f"{start}; print(train_tokenizer(['corpus.txt'], size=200).backend.to_str(), end='')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode() == trained("wordpiece").backend.to_str()


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_reads_the_saved_tokenizer(tmp_path: Path, kind: str) -> None:
    ours = trained(kind)
    ours.save(tmp_path)
    again, theirs = Tokenizer.load(tmp_path), transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        result = ours.encode(text)
        assert again.encode(text) == result
        reference = theirs(text, return_offsets_mapping=True)
        assert reference["input_ids"] == list(result.ids)
        assert [tuple(span) for span in reference["offset_mapping"]] == list(result.offsets)
        assert theirs(text, "the market")["input_ids"] == list(ours.encode(text, "the market").ids)
        assert theirs.decode(list(result.ids), skip_special_tokens=True) == ours.decode(result.ids)
    for role, number in ours.special.items():
        assert getattr(theirs, f"{role}_token_id") == number
    assert again.special == ours.special
    theirs.save_pretrained(tmp_path / "theirs")
    back = Tokenizer.load(tmp_path / "theirs")
    assert [back.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None)
@given(text=OPEN_TEXT | NEAR_TEXT.map(" ".join) | NEAR_TEXT.map("".join))
def test_offsets_slice_back_to_the_characters(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    result = tokenizer.encode(text)
    covered, last = set(), 0
    for number, (start, stop), special in zip(result.ids, result.offsets, result.special, strict=True):
        if special:
            continue
        assert last <= start <= stop <= len(text)
        last = start
        covered |= set(range(start, stop))
        piece = tokenizer.backend.id_to_token(number)
        assert piece is not None
        if number not in tokenizer.special.values():
            check_slice(kind, piece, text[start:stop])
    if kind in ("bpe", "char"):
        assert covered == set(range(len(text)))
    if kind == "bpe":
        assert tokenizer.decode(result.ids, special=True) == text


def check_slice(kind: str, piece: str, part: str) -> None:
    """The characters of the text that the offsets show are those the piece stands for."""
    if kind == "char":
        assert piece == part
    elif kind == "word":
        assert piece == unicodedata.normalize("NFC", part)
    elif kind == "wordpiece":
        assert piece.removeprefix("##") == "".join(
            c for c in unicodedata.normalize("NFD", part).lower() if unicodedata.category(c) not in ("Mn", "Cc", "Cf")
        )
    elif kind == "unigram":
        shown = trained(kind).backend.normalizer.normalize_str(part)
        assert piece.replace("▁", "").strip() in shown.replace("▁", "")


def test_dropped_words_give_a_warning() -> None:
    rng = random.Random(0)
    texts = [" ".join(str(rng.randrange(10**6)) for _ in range(100)) + " the market" for _ in range(40)]
    with pytest.warns(UserWarning, match=r"more than 500 distinct words: the rarest were dropped.*% of the text"):
        result = train_tokenizer_from_texts(texts, size=40, max_words=500)
    assert {"t", "##h", "##e"} <= result.backend.get_vocab().keys()


@pytest.mark.filterwarnings("ignore:the text gives")
@pytest.mark.parametrize("kind", KINDS)
def test_very_long_words(kind: str) -> None:
    rng = random.Random(0)
    line = "".join(rng.choices("abcdefgh", k=10_000 if kind == "unigram" else 100_000))
    for text in ("a" * 200_000, line):
        result = train_tokenizer_from_texts([text], kind=kind, size=300)
        assert len(result.encode(text)) > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "there is no text to learn from"),
        (b" \n \t\n", "there is no text to learn from"),
        (b"one\ntwo\0three\n", "a NUL byte in line 2"),
        ("one\ntwo café\n".encode("latin1"), "line 2 is not UTF-8.*--encoding"),
        (gzip.compress(b"words " * 1000, mtime=0)[:-20], "damaged or incomplete"),
        (lzma.compress(b"words " * 1000)[:-20], "damaged or incomplete"),
        (None, "cannot be read: No such file"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_unusable_files(tmp_path: Path, kind: str, content: bytes | None, message: str) -> None:
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        train_tokenizer([path], kind=kind)
    assert "corpus.txt" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "wordpeice"}, 'Did you mean "wordpiece"'),
        ({"kind": "sentences"}, "Choose one of: bpe, char, unigram, word, wordpiece"),
        ({"size": 0}, "size is 0, expected at least 1"),
        (
            {"size": 20},
            r"5 special tokens and \d+ characters, \d+ of them also inside words \(##\). Give a size of",
        ),
        ({"size": 100, "kind": "bpe"}, "1 special tokens and 256 bytes. Give a size of at least 257"),
        ({"size": 20, "kind": "unigram"}, r"3 special tokens and \d+ characters"),
        ({"size": 5, "kind": "char"}, "5 special tokens and 1 characters"),
        ({"alphabet": 0}, "alphabet is 0"),
    ],
)
def test_invalid_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        train_tokenizer_from_texts([CORPUS], **options)


def test_smaller_vocabulary_than_requested_gives_a_warning() -> None:
    with pytest.warns(UserWarning, match="the text gives .* tokens, not the requested 5,000"):
        train_tokenizer_from_texts([CORPUS], size=5000)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(("tokenizer", *argv))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_failure_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, message, err = run(capsys, str(tmp_path / "none.txt"), "--out", str(tmp_path / "out"))
    assert (status, message) == (1, "")
    assert "none.txt cannot be read" in err
    assert list(tmp_path.iterdir()) == []
