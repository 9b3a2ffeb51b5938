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


def lines(result: object) -> list[list[str]]:
    return [
        [result.words[i] for i in result.ids[a:b]]  # type: ignore[attr-defined]  # a WordText
        for a, b in pairwise(result.bounds)  # type: ignore[attr-defined]  # a WordText
    ]


def test_words_are_small_letters_and_digits_and_lines_stay_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "The cat, the Dog!\n\nA dog's 2 cats_the.\n")
    result = read_words([path], min_count=1)
    assert lines(result) == [["the", "cat", "the", "dog"], ["a", "dog", "s", "2", "cats", "the"]]
    assert result.words[:2] == ("the", "dog")
    assert result.counts.tolist() == [3, 2, 1, 1, 1, 1, 1]
    assert result.words_read == 10


def test_rare_words_are_left_out_and_lines_without_words_are_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "b a b\nx y z\na a b\n")
    result = read_words([path], min_count=2)
    assert result.words == ("b", "a")  # equals in the order they were met
    assert lines(result) == [["b", "a", "b"], ["a", "a", "b"]]
    assert result.words_read == 9


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
    result = read_words([write(tmp_path / "a.txt", text)], min_count=1, phrases=[2.2])
    assert "new_york" in result.words
    assert lines(result)[0] == ["new", "york", "new_york", "times"]
    assert lines(result)[-1] == ["new", "york"]
    twice = read_words([tmp_path / "a.txt"], min_count=1, phrases=[2.2, 1.5])
    assert lines(twice)[0] == ["new", "york", "times", "new_york_times"]


@given(st.lists(st.integers(-2, 3), min_size=2, max_size=60), st.floats(0.05, 3))
def test_joining_is_the_plain_loop(text: list[int], threshold: float) -> None:
    names = ["a", "b", "c", "d"]
    run = np.array(text, np.int32)
    counts = Counter(i for i in text if i >= 0)
    pairs: Counter[tuple[int, ...]] = Counter(pair for pair in pairwise(text) if min(pair) >= 0)
    expected, i = [], 0
    while i < len(text):
        pair = tuple(text[i : i + 2])
        times = pairs.get(pair, 0)
        if (
            times
            and min(counts[pair[0]], counts[pair[1]], times) >= 2
            and ((times - 4) * float(counts.total()) / (counts[pair[0]] * float(counts[pair[1]])) > threshold)
        ):
            expected.append(f"{names[pair[0]]}_{names[pair[1]]}")
            i += 2
        else:
            expected.append({MARK: "MARK", LINE: "LINE"}.get(text[i]) or names[text[i]])
            i += 1
    words, result = join_phrases(names, run, threshold, min_count=2)
    assert [{MARK: "MARK", LINE: "LINE"}.get(int(i)) or words[i] for i in result] == expected


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
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
