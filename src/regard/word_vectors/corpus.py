"""A text as a run of word ids: words in small letters, the rare ones left out, frequent neighbours joined to phrases.

The run takes four bytes a word, twelve while phrases are joined, and each distinct word about 150; that is all that is
held. The files are read once.
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
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.progress import OnProgress, Progress
from regard.text.text_files import read_chunks

Ints = npt.NDArray[np.integer[Any]]

MARK, LINE = -1, -2  # in the place of a word: anything else that is no blank, and the end of a line
DISCOUNT = 4  # sights of a phrase that do not count, so that a pair of rare words is none by chance


@dataclass(frozen=True)
class WordCorpus:
    """Words from the most frequent down, how often each was seen, the text in them, and where its lines begin."""

    words: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    bounds: npt.NDArray[np.int64]
    words_read: int  # words read, the rare ones too


def read_words(
    files: Sequence[str | Path],
    *,
    max_words: int | None = None,
    min_count: int = 5,
    phrases: Sequence[float] = (),
    encoding: str | None = None,
    progress: OnProgress | None = None,
) -> WordCorpus:
    """The words of text files, or their first `most`; a word is a run of letters and digits.

    `phrases` are the thresholds of passes that join neighbours, as word2phrase does: words a and b become a_b where
    (count of both − discount) × words / (count of a × count of b) is above. A second pass finds phrases of up to four.
    The words of a phrase stay, and the phrase stands after them: a word that is seen in phrases alone has a vector too.
    """
    if min_count < 1 or (max_words is not None and max_words < 1):
        raise InputError(f"min_count is {min_count} and most is {max_words}, expected 1 or more.")
    words, run, words_read = _numbered(files, max_words, progress, encoding)
    for threshold in phrases:
        words, run = join_phrases(words, run, threshold, min_count=min_count)
    if phrases:
        run = insert_phrase_words(words, run)
    return _frequent_words(words, run, min_count, words_read)


@cache
def token_pattern() -> re.Pattern[str]:
    """Runs of letters and digits, with the marks that combine with them; else runs of what is neither nor blank."""
    combining = "".join(
        re.escape(letter) for letter in map(chr, range(sys.maxunicode // 16)) if unicodedata.category(letter)[0] == "M"
    )
    return re.compile(rf"[^\W_]+(?:[{combining}]+[^\W_]*)*|[^\w \t]+")


def _numbered(
    files: Sequence[str | Path], max_words: int | None, progress: OnProgress | None, encoding: str | None
) -> tuple[list[str], npt.NDArray[np.int32], int]:
    """Words in the order they are met, and the text in their numbers, with marks and ends of lines."""
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
    if max_words is not None and words_read > max_words:  # the last piece held more
        text = text[: np.flatnonzero(text >= 0)[max_words - 1] + 1]
        words_read = max_words
    return words, text, words_read


def _texts(files: Sequence[str | Path], progress: OnProgress | None, encoding: str | None) -> Iterator[str]:
    """Pieces in small letters; a break of line after each file, so that no window goes from one into the next."""
    names = [files] if isinstance(files, str | Path) else files
    if not names:
        raise InputError("no file was given. Give at least one text file, plain or packed as .gz or .xz.")
    sizes = [path.stat().st_size if path.exists() else 0 for path in map(Path, names)]
    for number, name in enumerate(names):
        before = sum(sizes[:number])

        def file_progress(file: Progress, before: int = before) -> None:
            if progress is not None:
                progress(Progress("bytes read", before + file.done, sum(sizes)))

        yield from (piece.lower() for piece in read_chunks([name], encoding=encoding, progress=file_progress))
        yield "\n"


def join_phrases(
    words: list[str], run: npt.NDArray[np.int32], threshold: float, *, min_count: int
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """One pass: neighbours with nothing but a blank between them, joined from the left where they belong together."""
    if not threshold > 0:
        raise InputError(f"the threshold of phrases is {threshold}, expected more than 0.")
    size = len(words)
    counts = np.bincount(run[run >= 0], minlength=size)
    often = np.append(counts >= min_count, [False, False])  # MARK and LINE look at the end
    places = np.flatnonzero(often[run[:-1]] & often[run[1:]])
    keys = run[places].astype(np.int64) * size + run[places + 1]
    pairs, which, times = np.unique(keys, return_inverse=True, return_counts=True)
    left, right = np.divmod(pairs, size)
    score = (times - DISCOUNT) * float(counts.sum()) / (counts[left] * counts[right].astype(float))
    taken = (score > threshold) & (times >= min_count)
    chosen = taken[which]
    places, number = places[chosen], (np.cumsum(taken) - 1)[which[chosen]]
    first = _alternate(places)
    places, number = places[first], number[first]
    run = run.copy()
    run[places] = size + number
    stays = np.ones(len(run), bool)
    stays[places + 1] = False
    return words + [f"{words[a]}_{words[b]}" for a, b in zip(left[taken], right[taken], strict=True)], run[stays]


def insert_phrase_words(words: list[str], run: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Every phrase of the run after its words."""
    numbers = {word: number for number, word in enumerate(words)}
    flat, starts = array("i"), array("q")
    for number, word in enumerate(words):
        starts.append(len(flat))
        if "_" in word.strip("_"):
            flat.extend([numbers[part] for part in word.split("_")])
        flat.append(number)
    starts.extend([len(flat), len(flat) + 1, len(flat) + 2])
    flat.extend([LINE, MARK])  # which look at the end
    begins = np.frombuffer(starts, np.int64)
    sizes = np.diff(begins)[run]
    firsts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(firsts, sizes)
    matches: npt.NDArray[np.int32] = np.frombuffer(flat, np.int32)[np.repeat(begins[:-1][run], sizes) + within]
    return matches


def _alternate(places: Ints) -> npt.NDArray[np.bool_]:
    """Of places that follow each other the first, third, fifth …, as a joining from the left takes them."""
    index = np.arange(len(places))
    begins = np.ones(len(places), bool)
    begins[1:] = np.diff(places) != 1
    matches: npt.NDArray[np.bool_] = (index - np.maximum.accumulate(np.where(begins, index, 0))) % 2 == 0
    return matches


def _frequent_words(words: list[str], run: npt.NDArray[np.int32], min_count: int, words_read: int) -> WordCorpus:
    """Without marks and rare words, numbered from the most frequent down; equals in the order they were met."""
    lines = np.cumsum(run == LINE)[run >= 0]
    run = run[run >= 0]
    counts = np.bincount(run, minlength=len(words))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts >= min_count)]
    if len(order) < 2:
        raise InputError(
            f"of {words_read:,} words {len(order)} were seen {min_count} times or more, expected two at least. "
            "Give more text, or a smaller min count."
        )
    new = np.full(len(words), -1, np.int32)
    new[order] = np.arange(len(order))
    ids = new[run]
    lines, ids = lines[ids >= 0], ids[ids >= 0]
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(lines)) + 1, [len(ids)]])
    return WordCorpus(tuple(words[i] for i in order), counts[order], ids, bounds, words_read)
