"""A text as an array of word ids: lower case, without rare words.

Memory: four bytes per word, and about 150 per distinct word. Files are read once.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.progress import OnProgress, Progress
from regard.text.text_files import read_chunks

MARK, LINE = -1, -2  # instead of a word id: punctuation, and the end of a line


@dataclass(frozen=True)
class WordCorpus:
    """Words by decreasing frequency, their counts, the text as word ids, and the bounds of its lines."""

    words: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    bounds: npt.NDArray[np.int64]
    words_read: int  # including rare words


def read_words(
    files: Sequence[str | Path],
    *,
    max_words: int | None = None,
    min_count: int = 5,
    encoding: str | None = None,
    progress: OnProgress | None = None,
) -> WordCorpus:
    """The words of text files, or the first `max_words`; a word is a run of letters and digits."""
    if min_count < 1 or (max_words is not None and max_words < 1):
        raise InputError(f"min_count is {min_count} and max_words is {max_words}, expected 1 or more.")
    words, run, words_read = _numbered(files, max_words, progress, encoding)
    return _frequent_words(words, run, min_count, words_read)


@cache
def token_pattern() -> re.Pattern[str]:
    """Matches words (letters, digits and combining marks), and runs of other characters except blanks."""
    combining = "".join(
        re.escape(letter) for letter in map(chr, range(sys.maxunicode // 16)) if unicodedata.category(letter)[0] == "M"
    )
    return re.compile(rf"[^\W_]+(?:[{combining}]+[^\W_]*)*|[^\w \t]+")


def _numbered(
    files: Sequence[str | Path], max_words: int | None, progress: OnProgress | None, encoding: str | None
) -> tuple[list[str], npt.NDArray[np.int32], int]:
    """Distinct words in order of occurrence, and the text as their numbers, with punctuation and line ends."""
    numbers: dict[str, int] = {}
    run, words_read = array("i"), 0
    for piece in _texts(files, progress, encoding):
        matches = token_pattern().findall(piece)
        for token in matches:
            if token not in numbers:
                numbers[token] = len(numbers)
        run.extend([numbers[token] for token in matches])
        words_read += sum(token[0].isalnum() for token in matches)
        if max_words is not None and words_read >= max_words:
            break
    words = list(numbers)
    new = np.arange(len(words), dtype=np.int32)
    for number, token in enumerate(words):
        if not token[0].isalnum():
            new[number] = LINE if "\n" in token else MARK
    text = new[np.frombuffer(run, np.int32)] if run else np.zeros(0, np.int32)
    if max_words is not None and words_read > max_words:  # the last chunk had more
        text = text[: np.flatnonzero(text >= 0)[max_words - 1] + 1]
        words_read = max_words
    return words, text, words_read


def _texts(files: Sequence[str | Path], progress: OnProgress | None, encoding: str | None) -> Iterator[str]:
    """Lower-case chunks of text, with a line break after each file, so that no window spans two files."""
    names = [files] if isinstance(files, str | Path) else files
    if not names:
        raise InputError("no file was given. Give at least one text file, plain or compressed (.gz, .xz).")
    sizes = [path.stat().st_size if path.exists() else 0 for path in map(Path, names)]
    for number, name in enumerate(names):
        before = sum(sizes[:number])

        def file_progress(file: Progress, before: int = before) -> None:
            if progress is not None:
                progress(Progress("bytes read", before + file.done, sum(sizes)))

        yield from (piece.lower() for piece in read_chunks([name], encoding=encoding, progress=file_progress))
        yield "\n"


def _frequent_words(words: list[str], run: npt.NDArray[np.int32], min_count: int, words_read: int) -> WordCorpus:
    """The text without punctuation and rare words; words numbered by decreasing frequency."""
    lines = np.cumsum(run == LINE)[run >= 0]
    run = run[run >= 0]
    counts = np.bincount(run, minlength=len(words))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts >= min_count)]
    if len(order) < 2:
        raise InputError(
            f"of {words_read:,} words, {len(order)} occur {min_count} times or more; expected at least 2. "
            "Give more text, or a smaller min_count."
        )
    new = np.full(len(words), -1, np.int32)
    new[order] = np.arange(len(order))
    ids = new[run]
    lines, ids = lines[ids >= 0], ids[ids >= 0]
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(lines)) + 1, [len(ids)]])
    return WordCorpus(tuple(words[i] for i in order), counts[order], ids, bounds, words_read)
