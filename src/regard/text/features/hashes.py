"""Hashes of word and character n-grams of many texts at once, without a Python object per n-gram.

Texts become one array of code points. An n-gram is a polynomial of its code points modulo 2**64, so that the hashes of
all n-grams of a length are a few operations on whole arrays. Of the hash 48 bits are kept: of ten million different
n-grams, two share a hash by chance less than once in five data sets. A key holds the hash and, in its last 16 bits, the
number of the text, so that one sort finds the n-grams of each text.

Words are as `\\w+(?:['’]\\w+)*|[^\\w\\s]` of a regular expression: punctuation characters are words of their own.
Character n-grams are those of scikit-learn's analyzer "char_wb": inside what is between blanks, with one blank on each
side.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
INVERSE = pow(BASE, -1, 1 << 64)
MIX = 0xBF58476D1CE4E5B9  # spreads all bits of a polynomial over the highest ones
TEXT_BITS = 16  # a key is a hash of 48 bits, then the number of its text
MAX_TEXTS = 1 << TEXT_BITS
SECOND = 0xD1B54A32D192ED03  # of the second word of a pair
APOSTROPHES = (0x27, 0x2019)
BLANK = 0x20
CODES = 0x110000


class CodePoints(NamedTuple):
    """Some texts as code points, with a blank before, between and after them and no two blanks in a row."""

    codes: npt.NDArray[np.uint64]
    text: Ints  # of each code point; a blank belongs to the text before it


@functools.cache
def _tables() -> tuple[Bools, Bools]:
    """Which code points are letters, digits or underscores, and which are blanks."""
    every = "".join(map(chr, range(CODES)))
    return _matches(r"\w+", every), _matches(r"\s+", every)


def _matches(pattern: str, text: str) -> Bools:
    matched = np.zeros(len(text), np.bool_)
    for match in re.finditer(pattern, text):
        matched[match.start() : match.end()] = True
    return matched


def code_points(texts: Sequence[str], *, lowercase: bool) -> CodePoints:
    """The texts in one array."""
    parts = [text.lower() for text in texts] if lowercase else list(texts)
    flat = np.frombuffer((" " + " ".join(parts) + " ").encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.fromiter((len(part) + 1 for part in parts), np.int64, len(parts))
    text = np.concatenate((np.zeros(1, np.int64), np.repeat(np.arange(len(parts)), lengths)))
    blank = _tables()[1][flat]
    keep = ~blank
    keep[0] = True
    keep[1:] |= ~blank[:-1]
    codes = np.where(blank, BLANK, flat).astype(np.uint64)
    return CodePoints(codes[keep], text[keep])


def word_hashes(points: CodePoints, shortest: int, longest: int) -> Hashes:
    """The keys of all sequences of `shortest` to `longest` words."""
    codes = points.codes
    bounds, starts = _word_bounds(codes)
    powers, inverses = _powers(len(codes))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(codes * powers, dtype=np.uint64)))
    single = (sums[bounds] - sums[starts]) * inverses[starts]
    text = points.text[starts]
    parts: list[Hashes] = []
    joined = single
    for count in range(1, longest + 1):
        if count > 1:
            joined = (joined[:-1] ^ (joined[:-1] >> np.uint64(29))) * np.uint64(SECOND) + single[count - 1 :]
        inside = text[: len(joined)] == text[count - 1 :]
        if count >= shortest:
            parts.append(_keys(text[: len(joined)][inside], joined[inside]))
    return _concatenated(parts)


def _word_bounds(codes: npt.NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The ends and the starts of all words; code points next to blanks and punctuation are never inside a word."""
    inside = _tables()[0][codes]
    inner = np.zeros(len(codes), np.bool_)
    inner[1:-1] = np.isin(codes[1:-1], APOSTROPHES) & inside[:-2] & inside[2:]
    inside |= inner
    continues = np.zeros(len(codes), np.bool_)
    continues[1:] = inside[1:] & inside[:-1]
    starts = np.flatnonzero(~continues & (codes != BLANK))
    last = np.ones(len(codes), np.bool_)
    last[:-1] = ~continues[1:]
    ends = np.flatnonzero(last & (codes != BLANK)) + 1
    return ends, starts


@functools.lru_cache(maxsize=1)
def _power_tables(size: int) -> tuple[Hashes, Hashes]:
    def powers(base: int) -> Hashes:
        values = np.full(size, base, np.uint64)
        values[0] = 1
        return np.cumprod(values, dtype=np.uint64)

    return powers(BASE), powers(INVERSE)


def _powers(size: int) -> tuple[Hashes, Hashes]:
    """Powers of the base and of its inverse; tables of a few sizes are shared by batches of similar length."""
    powers, inverses = _power_tables(1 << max(size - 1, 1).bit_length())
    return powers[:size], inverses[:size]


def character_hashes(points: CodePoints, shortest: int, longest: int) -> Hashes:
    """The keys of all sequences of `shortest` to `longest` characters with no blank inside."""
    codes = points.codes
    blanks = np.concatenate((np.zeros(1, np.int64), np.cumsum(codes == BLANK)))
    parts: list[Hashes] = []
    grams = codes
    for count in range(1, min(longest, len(codes)) + 1):
        if count > 1:
            grams = grams[:-1] * np.uint64(BASE) + codes[count - 1 :]
        if count < shortest:
            continue
        starts = np.arange(len(grams))
        whole = (blanks[np.maximum(starts + count - 1, starts + 1)] - blanks[starts + 1]) == 0
        if count == 1:
            whole &= codes != BLANK
        first = starts[whole]
        parts.append(_keys(points.text[first + (codes[first] == BLANK) * (count > 1)], grams[whole]))
    return _concatenated(parts)


def _keys(text: Ints, polynomial: Hashes) -> Hashes:
    mixed = (polynomial ^ (polynomial >> np.uint64(32))) * np.uint64(MIX)
    keys: Hashes = (mixed & np.uint64(~(MAX_TEXTS - 1) & ((1 << 64) - 1))) | text.astype(np.uint64)
    return keys


def _concatenated(parts: Sequence[Hashes]) -> Hashes:
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def unique_keys(keys: Hashes) -> Hashes:
    """Sorted, each once."""
    ordered = np.sort(keys)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def split_keys(keys: Hashes) -> tuple[Hashes, npt.NDArray[np.uint16]]:
    """The hash and the text of each key."""
    return keys >> np.uint64(TEXT_BITS), keys.astype(np.uint16)
