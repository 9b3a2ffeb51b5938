"""Vocabularies that are learned: transformers reads them, offsets hold for any text, memory and time stay bounded."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from regard import cli
from regard.errors import InputError
from regard.progress import Progress
from regard.text.learn import KINDS, train_tokenizer, train_tokenizer_from_texts
from regard.text.text_files import CHUNK, first_lines, read_chunks, split_chunks
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_report import tokenizer_report
from regard.text.vocabularies import bpe, common, wordpiece
from regard.text.vocabularies.common import VocabularySettings
from regard.text.word_counts import WordCounter, scale_counts

SENTENCES = [
    "The old man went to the market on Monday, and bought five apples.",
    "Nobody at the market had ever seen such apples; they were as big as melons!",
    'He said: "I shall plant the seeds behind my house, near the café."',
    "Years later there stood an orchard, and every Monday people came to buy.",
    "Ein Bär saß über dem Fluß. 東京 は 大きい。 Привет, мир!",
]
CORPUS = "\n".join(SENTENCES * 4) + "\n\n" + "\n".join(SENTENCES[:4] * 6)
SIZES = {"wordpiece": 200, "bpe": 420, "unigram": 90, "char": 62}
TEXTS = [
    *SENTENCES,
    "",
    " \t\n ",
    "apples [MASK] <|endoftext|> </s> naïve 😀 zzz e\u0301",
    "a\u200bb \u00a0the  market",
]
OPEN_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NEAR_TEXT = st.lists(st.sampled_from([*CORPUS.split(), " ", "\n", "é", "É", "ﬁ", "İ", "▁", "Ġ", "##s"]), max_size=8)


def fresh(kind: str, **changes: Any) -> Tokenizer:
    return train_tokenizer_from_texts([CORPUS], **{"kind": kind, "size": SIZES[kind], **changes})


LEARNED: dict[str, Tokenizer] = {}  # one of each kind


@pytest.fixture(autouse=True, scope="module")
def _learned() -> None:
    LEARNED.update({kind: fresh(kind) for kind in KINDS})


# what is learned


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_and_sizes(kind: str) -> None:
    found = LEARNED[kind]
    assert found.size == SIZES[kind] or kind == "char"
    bert = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    roles = {"wordpiece": bert, "char": bert, "bpe": {"bos": 0, "eos": 0}, "unigram": {"pad": 0, "eos": 1, "unk": 2}}
    assert found.special == roles[kind]
    frames: dict[str, Any] = {"bpe": ((), ()), "unigram": ((), (1,))}
    assert found.surrounding_ids == frames.get(kind, ((2,), (3,)))


@pytest.mark.parametrize(
    ("name", "special", "pair"),
    [
        ("roberta", {"bos": 0, "cls": 0, "pad": 1, "eos": 2, "sep": 2, "unk": 3, "mask": 4}, [0, 2, 2, 2]),
        ("bert", {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}, [2, 3, 3]),
    ],
)
def test_byte_level_pairs_with_a_mask_token(
    tmp_path: Path, name: str, special: dict[str, int], pair: list[int]
) -> None:
    ours = fresh("bpe", special_tokens=name)
    assert ours.special == special
    assert [token for token in ours.encode("the market", "the").ids if token < 5] == pair
    mask = "<mask>" if name == "roberta" else "[MASK]"
    assert special["mask"] in ours.encode(f"the {mask}").ids
    ours.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert theirs(text)["input_ids"] == list(ours.encode(text).ids)
        assert theirs(text, "the market")["input_ids"] == list(ours.encode(text, "the market").ids)
        assert Tokenizer.load(tmp_path).encode(text) == ours.encode(text)


@pytest.mark.parametrize(("kind", "name"), [("wordpiece", "roberta"), ("bpe", "robreta")])
def test_special_tokens_that_cannot_be(kind: str, name: str) -> None:
    with pytest.raises(InputError, match="special tokens"):
        fresh(kind, special_tokens=name)


def test_frequent_words_are_pieces() -> None:
    assert {"market", "apples", "the"} <= set(LEARNED["wordpiece"].backend.get_vocab())
    assert {"Ġmarket", "Ġthe"} <= set(LEARNED["bpe"].backend.get_vocab())
    assert {"▁the", "▁Monday"} <= set(LEARNED["unigram"].backend.get_vocab())


@pytest.mark.parametrize("kind", KINDS)
def test_small_letters_or_not(kind: str) -> None:
    small, large = fresh(kind, lowercase=True, size=SIZES[kind] - 10), fresh(kind, lowercase=False)
    assert small.encode("THE MARKET") == small.encode("the market")
    assert large.encode("THE MARKET") != large.encode("the market")
    default = LEARNED[kind].encode("THE") == LEARNED[kind].encode("the")
    assert default == (kind == "wordpiece")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [len(CORPUS), 700])
def test_the_same_text_gives_the_same_ids(kind: str, length: int) -> None:
    """Several times over, for the trainers' hash tables are in another order each time."""
    size = {"bpe": 300, "unigram": 80}.get(kind, 150)
    said = {train_tokenizer_from_texts([CORPUS[:length]], kind=kind, size=size).backend.to_str() for _ in range(4)}
    assert len(said) == 1


def test_another_process_gives_the_same_ids(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    start = "from regard.text.learn import train_tokenizer"
    code = f"{start}; print(train_tokenizer(['corpus.txt'], size=200).backend.to_str(), end='')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode() == LEARNED["wordpiece"].backend.to_str()


# transformers


@pytest.mark.parametrize("kind", KINDS)
def test_saved_here_opened_there(tmp_path: Path, kind: str) -> None:
    ours = LEARNED[kind]
    ours.save(tmp_path)
    again, theirs = Tokenizer.load(tmp_path), transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        found = ours.encode(text)
        assert again.encode(text) == found
        asked = theirs(text, return_offsets_mapping=True)
        assert asked["input_ids"] == list(found.ids)
        assert [tuple(span) for span in asked["offset_mapping"]] == list(found.offsets)
        assert theirs(text, "the market")["input_ids"] == list(ours.encode(text, "the market").ids)
        assert theirs.decode(found.ids, skip_special_tokens=True) == ours.decode(found.ids)
    for role, number in ours.special.items():
        assert getattr(theirs, f"{role}_token_id") == number
    assert again.special == ours.special
    theirs.save_pretrained(tmp_path / "theirs")
    back = Tokenizer.load(tmp_path / "theirs")
    assert [back.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]


# offsets


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None)
@given(text=OPEN_TEXT | NEAR_TEXT.map(" ".join) | NEAR_TEXT.map("".join))
def test_offsets_slice_back_to_the_very_characters(kind: str, text: str) -> None:
    tokenizer = LEARNED[kind]
    found = tokenizer.encode(text)
    covered, last = set(), 0
    for number, (start, stop), special in zip(found.ids, found.offsets, found.special, strict=True):
        if special:
            continue
        assert last <= start <= stop <= len(text)
        last = start
        covered |= set(range(start, stop))
        piece = tokenizer.backend.id_to_token(number)
        if number not in tokenizer.special.values():
            check_slice(kind, piece, text[start:stop])
    if kind in ("bpe", "char"):
        assert covered == set(range(len(text)))
    if kind == "bpe":
        assert tokenizer.decode(found.ids, special=True) == text


def check_slice(kind: str, piece: str, part: str) -> None:
    """The characters of the text that the offsets show are those the piece stands for."""
    if kind == "char":
        assert piece == part
    elif kind == "wordpiece":
        assert piece.removeprefix("##") == "".join(
            c for c in unicodedata.normalize("NFD", part).lower() if unicodedata.category(c) not in ("Mn", "Cc", "Cf")
        )
    elif kind == "unigram":
        shown = LEARNED[kind].backend.normalizer.normalize_str(part)
        assert piece.replace("▁", "").strip() in shown.replace("▁", "")


# the stream


def test_packed_files_give_the_same(tmp_path: Path) -> None:
    raw = CORPUS.encode()
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    (tmp_path / "a.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "a.xz").write_bytes(lzma.compress(raw))
    for name in ("a.txt", "a.gz", "a.xz"):
        assert "".join(read_chunks([tmp_path / name])) == CORPUS
        assert train_tokenizer([tmp_path / name], size=200).backend.to_str() == LEARNED["wordpiece"].backend.to_str()
    both = "".join(read_chunks([tmp_path / "a.gz", tmp_path / "a.xz"]))
    assert both == CORPUS * 2
    assert first_lines([tmp_path / "a.gz", tmp_path / "a.xz"], 4) == SENTENCES[:2] * 2


def test_progress_counts_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(CORPUS * 900, encoding="utf-8")
    (tmp_path / "b.xz").write_bytes(lzma.compress(CORPUS.encode()))
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    reports: list[Progress] = []
    list(read_chunks([tmp_path / "a.txt", tmp_path / "b.xz"], progress=reports.append))
    assert {report.total for report in reports} == {total}
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    assert reports[-1] == Progress("bytes", total, total)
    assert len(reports) > 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "é ", "東", " \n", "word "]), st.integers(1, 90_000)), max_size=4))
def test_pieces_are_short_and_lose_nothing(parts: list[tuple[str, int]]) -> None:
    texts = [part * count for part, count in parts]
    pieces = list(split_chunks(iter(texts)))
    assert "".join(pieces) == "".join(texts)
    assert all(0 < len(piece) <= CHUNK for piece in pieces)


def test_counts_are_those_of_the_whole_text() -> None:
    for kind, vocabulary in (("wordpiece", wordpiece), ("bpe", bpe)):
        shell = vocabulary.new_backend(VocabularySettings(kind, 300, kind == "wordpiece", 1000, 1000))
        assert shell.pre_tokenizer is not None
        counter = WordCounter(shell.normalizer, shell.pre_tokenizer, keep_spaces=kind == "bpe")
        for piece in split_chunks(iter([CORPUS * 40])):
            counter.add(piece)
        counter.flush()
        text = CORPUS * 40 if shell.normalizer is None else shell.normalizer.normalize_str(CORPUS * 40)
        expected: dict[str, int] = {}
        for word, _ in shell.pre_tokenizer.pre_tokenize_str(text):
            expected[word] = expected.get(word, 0) + 1
        assert counter.words == expected
        assert (counter.total, counter.dropped) == (sum(expected.values()), 0)


def test_scaled_counts_keep_their_proportions() -> None:
    words = [("the", 700), ("of", 200), *((f"w{i}", 1) for i in range(100))]
    assert list(scale_counts(words, 1000, 1000)) == words
    found = dict(scale_counts(words, 1000, 100))
    assert (found["the"], found["of"], sum(found.values())) == (70, 20, 100)
    assert set(found.values()) == {70, 20, 1}


def test_scaling_down_leaves_the_vocabulary_much_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "MAX_TRAINING_WORDS", 400)
    monkeypatch.setattr(common, "REPETITIONS", 7)
    some = set(fresh("wordpiece", size=180).backend.get_vocab())
    assert {"market", "apples", "the"} <= some


# odd texts


def test_memory_is_bounded_by_the_words_that_are_kept() -> None:
    """A million distinct words and a few frequent ones: the counter never holds more than it may."""
    counter, most = WordCounter(None, pre_tokenizers.WhitespaceSplit(), keep_spaces=False, max_words=20_000), 0
    for start in range(0, 1_000_000, 2000):
        counter.add(" ".join(f"{number:x}" for number in range(start, start + 2000)))
        counter.add("the market and the apples " * 20)
        most = max(most, len(counter.words), len(counter.strings) - 400_000)
    counter.flush()
    assert max(most, len(counter.words)) <= 20_000
    assert counter.words["the"] == 20_000
    assert counter.total == 1_000_000 + 50_000
    assert counter.words.total() + counter.dropped == counter.total


def test_what_is_forgotten_is_said() -> None:
    rng = random.Random(0)
    texts = [" ".join(str(rng.randrange(10**6)) for _ in range(100)) + " the market" for _ in range(40)]
    with pytest.warns(UserWarning, match=r"more than 500 distinct words: the rarest were dropped.*% of the text"):
        found = train_tokenizer_from_texts(texts, size=40, max_words=500)
    assert {"t", "##h", "##e"} <= found.backend.get_vocab().keys()


@pytest.mark.filterwarnings("ignore:the text gives")
@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_of_one_character_and_a_long_line(kind: str) -> None:
    rng = random.Random(0)
    line = "".join(rng.choices("abcdefgh", k=20_000 if kind == "unigram" else 500_000))
    for text in ("a" * 1_000_000, line):
        start = time.process_time()
        found = train_tokenizer_from_texts([text], kind=kind, size=300)
        assert len(found.encode(text)) > 0
        assert time.process_time() - start < 20


# errors


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "there is no text to learn from"),
        (b" \n \t\n", "there is no text to learn from"),
        (b"one\ntwo\0three\n", "a NUL byte in line 2"),
        ("one\ntwo café\n".encode("latin1"), "line 2 is not UTF-8.*--encoding"),
        (gzip.compress(b"words " * 1000)[:-20], "damaged or incomplete"),
        (lzma.compress(b"words " * 1000)[:-20], "damaged or incomplete"),
        (None, "cannot be read: No such file"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_files_that_cannot_be_learned_from(tmp_path: Path, kind: str, content: bytes | None, says: str) -> None:
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        train_tokenizer([path], kind=kind)
    assert "corpus.txt" in str(caught.value)


def test_a_folder_or_nothing_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        train_tokenizer([tmp_path])
    with pytest.raises(InputError, match="no file was given"):
        train_tokenizer([])
    with pytest.raises(InputError, match="no text to learn from"):
        train_tokenizer_from_texts([])


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "growing.txt"
    path.write_text(CORPUS * 500, encoding="utf-8")
    pieces = read_chunks([path])
    next(pieces)
    with path.open("a", encoding="utf-8") as file:
        file.write(CORPUS)
    with pytest.raises(InputError, match="changed while it was read"):
        list(pieces)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kind": "wordpeice"}, 'Did you mean "wordpiece"'),
        ({"kind": "sentences"}, "Choose one of: bpe, char, unigram, wordpiece"),
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
def test_settings_that_cannot_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        train_tokenizer_from_texts([CORPUS], **given)


def test_the_smallest_size_that_is_named_works() -> None:
    for kind in ("wordpiece", "bpe", "unigram"):
        with pytest.raises(InputError, match="at least") as caught:
            train_tokenizer_from_texts([CORPUS], kind=kind, size=10)
        smallest = int(str(caught.value).split("at least ")[1].split(",")[0])
        assert train_tokenizer_from_texts([CORPUS], kind=kind, size=smallest).size == smallest


def test_rare_characters_become_unknown() -> None:
    found = train_tokenizer_from_texts([CORPUS], size=90, alphabet=30)
    assert found.unk in found.encode("東京").ids
    assert found.unk not in found.encode("the market").ids


def test_fewer_pieces_than_asked_for_are_said() -> None:
    with pytest.warns(UserWarning, match="the text gives .* tokens, not the requested 5,000"):
        train_tokenizer_from_texts([CORPUS], size=5000)


@pytest.mark.parametrize(
    "model", [models.WordLevel({"a": 0}, unk_token="[UNK]"), models.Unigram([("a", -1.0)]), models.WordPiece({"a": 0})]
)
def test_a_vocabulary_without_an_unknown_token_names_the_text(model: models.Model) -> None:
    bare = Tokenizer(Backend(model))
    assert bare.encode_batch(["a"])[0].ids == (0,)
    with pytest.raises(InputError, match=r'text 1 \("zz"\) has a part.*unk_token.*regard tokenizer'):
        bare.encode_batch(["a", "zz", "yy"])
    with pytest.raises(InputError, match=r'pair 0 \("a"\)'):
        bare.encode_batch(["a"], ["zz"])
    with pytest.raises(InputError, match=r'the text \("zz"\)'):
        bare.encode("zz")


# the report


def test_report_counts() -> None:
    found = tokenizer_report(LEARNED["wordpiece"], ["the market", "the €", ""])
    assert (found.kind, found.size, found.texts, found.words) == ("wordpiece", 200, 2, 4)
    assert (found.coverage, found.unknown_fraction, found.single_token_fraction, found.tokens_per_word) == (
        0.75,
        0.25,
        0.75,
        1.0,
    )
    assert found.frequent_words == ("the", "market")
    assert found.example_tokens == ("[CLS]", "the", "market", "[SEP]")
    assert len(found.longest_tokens[0]) >= len(found.longest_tokens[-1])
    assert tokenizer_report(LEARNED["wordpiece"], [" " * 90 + "one two three four five six"]).example.startswith(
        "one two"
    )
    with pytest.raises(InputError, match="no text to report on"):
        tokenizer_report(LEARNED["wordpiece"], [" "])


@pytest.mark.parametrize("kind", KINDS)
def test_report_of_each_kind(kind: str) -> None:
    found = tokenizer_report(LEARNED[kind], SENTENCES)
    assert found.kind == kind
    assert found.words == 80
    assert found.coverage > 0.98
    assert 0 <= found.unknown_fraction < 0.02
    assert found.single_token_fraction < 1 < found.tokens_per_word
    assert found.example == "The old man went to the market on Monday, and bought five apples."


# the command line


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(("tokenizer", *argv))
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize("kind", KINDS)
def test_learn_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    source, out = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_text(CORPUS, encoding="utf-8")
    argv = [str(source), "--kind", kind, "--size", str(SIZES[kind]), "--out", str(out)]
    status, said, err = run(capsys, *argv, "--json")
    found = json.loads(said)
    assert (status, err) == (0, "")
    assert (found["kind"], found["size"], found["folder"]) == (kind, LEARNED[kind].size, str(out))
    assert Tokenizer.load(out).backend.to_str() == LEARNED[kind].backend.to_str()
    status, said, err = run(capsys, *argv)
    assert (status, said) == (1, "")
    assert "exists and is not empty" in err
    status, said, err = run(capsys, *argv, "--overwrite")
    assert (status, err) == (0, "")
    assert "tokens per word" in said
    assert len(said.splitlines()) == 12


def test_letters_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_text(CORPUS, encoding="utf-8")
    assert run(capsys, str(source), "--size", "200", "--cased", "--out", str(out))[0] == 0
    assert "The" in Tokenizer.load(out).backend.get_vocab()
    both = run(capsys, str(source), "--cased", "--lowercase", "--out", str(out))
    assert (both[0], both[1]) == (2, "")
    assert "give one of them" in both[2]
    assert run(capsys, "--out", str(out))[0] == 2
    assert run(capsys, str(source), "--kind", "wordpeice", "--out", str(out))[0] == 2


def test_a_failure_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said, err = run(capsys, str(tmp_path / "none.txt"), "--out", str(tmp_path / "out"))
    assert (status, said) == (1, "")
    assert "none.txt cannot be read" in err
    assert list(tmp_path.iterdir()) == []
