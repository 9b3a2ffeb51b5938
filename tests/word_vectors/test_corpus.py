"""Texts as runs of word ids."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.word_vectors.corpus import LINE, MARK, join_phrases, read_words


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(found: object) -> list[list[str]]:
    return [
        [found.words[i] for i in found.ids[a:b]]  # type: ignore[attr-defined]  # a WordText
        for a, b in pairwise(found.bounds)  # type: ignore[attr-defined]  # a WordText
    ]


def test_words_are_small_letters_and_digits_and_lines_stay_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "The cat, the Dog!\n\nA dog's 2 cats_the.\n")
    found = read_words([path], min_count=1)
    assert lines(found) == [["the", "cat", "the", "dog"], ["a", "dog", "s", "2", "cats", "the"]]
    assert found.words[:2] == ("the", "dog")
    assert found.counts.tolist() == [3, 2, 1, 1, 1, 1, 1]
    assert found.words_read == 10


def test_rare_words_are_left_out_and_lines_without_words_are_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "b a b\nx y z\na a b\n")
    found = read_words([path], min_count=2)
    assert found.words == ("b", "a")  # equals in the order they were met
    assert lines(found) == [["b", "a", "b"], ["a", "a", "b"]]
    assert found.words_read == 9


def test_the_first_words_and_several_packed_files(tmp_path: Path) -> None:
    first = write(tmp_path / "a.txt", "one two")
    second = tmp_path / "b.txt.gz"
    second.write_bytes(gzip.compress(b"three one two, three four"))
    assert lines(read_words([first, second], min_count=1, max_words=5)) == [["one", "two"], ["three", "one", "two"]]


def test_letters_with_combining_marks_are_one_word(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "हिन्दी e\u0301te\u0301 naïve ΣΟΦΙΑ x")
    assert lines(read_words([path], min_count=1)) == [["हिन्दी", "e\u0301te\u0301", "naïve", "σοφια", "x"]]


def test_phrases_are_joined_from_the_left_but_not_over_a_mark(tmp_path: Path) -> None:
    text = "new york times\n" * 30 + "york. new, a b c d\n" * 3 + "new. york\n"
    found = read_words([write(tmp_path / "a.txt", text)], min_count=1, phrases=[2.2])
    assert "new_york" in found.words
    assert lines(found)[0] == ["new", "york", "new_york", "times"]
    assert lines(found)[-1] == ["new", "york"]
    twice = read_words([tmp_path / "a.txt"], min_count=1, phrases=[2.2, 1.5])
    assert lines(twice)[0] == ["new", "york", "times", "new_york_times"]


@given(st.lists(st.integers(-2, 3), min_size=2, max_size=60), st.floats(0.05, 3))
def test_joining_is_the_plain_loop(text: list[int], threshold: float) -> None:
    names = ["a", "b", "c", "d"]
    run = np.array(text, np.int32)
    counts = Counter(i for i in text if i >= 0)
    pairs: Counter[tuple[int, ...]] = Counter(pair for pair in pairwise(text) if min(pair) >= 0)
    wanted, i = [], 0
    while i < len(text):
        pair = tuple(text[i : i + 2])
        times = pairs.get(pair, 0)
        if (
            times
            and min(counts[pair[0]], counts[pair[1]], times) >= 2
            and ((times - 4) * float(counts.total()) / (counts[pair[0]] * float(counts[pair[1]])) > threshold)
        ):
            wanted.append(f"{names[pair[0]]}_{names[pair[1]]}")
            i += 2
        else:
            wanted.append({MARK: "MARK", LINE: "LINE"}.get(text[i]) or names[text[i]])
            i += 1
    words, found = join_phrases(names, run, threshold, min_count=2)
    assert [{MARK: "MARK", LINE: "LINE"}.get(int(i)) or words[i] for i in found] == wanted


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a b c")
    with pytest.raises(InputError, match="expected at least 2"):
        read_words([path])
    with pytest.raises(InputError, match="min_count is 0"):
        read_words([path], min_count=0)
    with pytest.raises(InputError, match="threshold"):
        read_words([path], min_count=1, phrases=[0])
    with pytest.raises(InputError, match="no file"):
        read_words([])
    with pytest.raises(InputError, match="expected at least 2"):
        read_words([write(tmp_path / "b.txt", "")])
