"""Texts as runs of word ids."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from regard.errors import InputError
from regard.word_vectors.corpus import read_words


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


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a b c")
    with pytest.raises(InputError, match="expected at least 2"):
        read_words([path])
    with pytest.raises(InputError, match="min_count is 0"):
        read_words([path], min_count=0)
    with pytest.raises(InputError, match="no file"):
        read_words([])
    with pytest.raises(InputError, match="expected at least 2"):
        read_words([write(tmp_path / "b.txt", "")])
