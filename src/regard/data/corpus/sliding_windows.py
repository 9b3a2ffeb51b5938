"""Sliding windows over running text, for perplexity: each token is scored once, with the tokens before it as context.

Each window starts `size - overlap` tokens after the one before. The tokens that both windows contain are only context,
the rest is scored. The first token of a text is not scored, and without overlap the first token of every window, as
in the usual recipe with transformers. Text is streamed: only the window and the current chunk are in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regard.data.readers import Reader
from regard.data.records import DocumentRecord
from regard.errors import InputError
from regard.text.encoding import Encoding
from regard.text.flat_tokens import Ints
from regard.text.tokenizer import Tokenizer

CHUNK = 1 << 18  # characters that are tokenized at once; a text that is no longer is tokenized whole
CUT_RANGE = 1 << 12  # last characters of a chunk, searched for a position to cut
CUTS = (re.compile(r"(?<=\S) (?=\S)"), re.compile(r"\s(?=\S)"))  # no tokenizer joins characters across these positions
WORD = re.compile(r"\S+")


class TextChunk(NamedTuple):
    """A part of a text."""

    text: str
    starts_text: bool  # whether it is the first chunk of a text


@dataclass(frozen=True, slots=True)
class TextWindow:
    """Tokens of a text; those from `first_scored` on are scored. `characters` and `words` count the scored text."""

    ids: list[int]
    first_scored: int
    characters: int
    words: int


def text_chunks(reader: Reader) -> Iterator[TextChunk]:
    """A file of plain text as one text with its blank lines; in other formats every row is a separate text."""
    if reader.schema.format == "text":
        yield from _joined(reader.lines())
        return
    starts_text = True
    for record in reader:
        assert isinstance(record, DocumentRecord)
        yield TextChunk(record.text, starts_text)
        starts_text = not record.continues


def _joined(lines: Iterable[tuple[str, bool]]) -> Iterator[TextChunk]:
    buffer, starts_text = "", True
    for line, is_first in lines:
        if is_first and buffer:
            yield TextChunk(buffer, starts_text)
        if is_first:
            buffer, starts_text = "", True
        buffer += line
        while len(buffer) > CHUNK:
            at = _cut(buffer)
            yield TextChunk(buffer[:at], starts_text)
            buffer, starts_text = buffer[at:], False
    if buffer:
        yield TextChunk(buffer, starts_text)


def _cut(text: str) -> int:
    """The last position within the first chunk at which the text can be cut."""
    start = CHUNK - CUT_RANGE
    for cut in CUTS:
        positions = [match.start() for match in cut.finditer(text, start, CHUNK)]
        if positions:
            return positions[-1]
    return CHUNK


class _TokenBuffer:
    """Tokens for the next windows, with the number of characters and words of each token."""

    def __init__(self, start: Sequence[int] = ()) -> None:
        self.first_scored = 1  # the first token is only context
        self.ids_N: Ints = np.array(start, np.int64)
        self.counts_N2: Ints = np.zeros((len(start), 2), np.int64)

    def __len__(self) -> int:
        return len(self.ids_N)

    def add(self, ids: Sequence[int], counts_N2: Ints) -> None:
        self.ids_N = np.concatenate((self.ids_N, np.array(ids, np.int64)))
        self.counts_N2 = np.concatenate((self.counts_N2, counts_N2))

    def window(self, size: int) -> TextWindow:
        characters, words = self.counts_N2[self.first_scored : size].sum(0).tolist()
        return TextWindow(self.ids_N[:size].tolist(), self.first_scored, characters, words)

    def move(self, step: int, size: int) -> None:
        self.ids_N, self.counts_N2, self.first_scored = self.ids_N[step:], self.counts_N2[step:], max(size - step, 1)


def sliding_windows(
    chunks: Iterable[TextChunk], tokenizer: Tokenizer, *, size: int, overlap: float
) -> Iterator[TextWindow]:
    """Windows of `size` tokens over each text; the next window repeats the fraction `overlap` of the tokens."""
    if not 0 <= overlap < 1:
        raise InputError(
            f"windows cannot share {overlap:g} of their tokens; use a fraction from 0 up to but not including 1."
        )
    if size < 2:
        raise InputError(f"windows of {size} tokens have no context before a token; use at least 2.")
    step = max(size - round(size * overlap), 1)
    start = [tokenizer.bos] if tokenizer.bos is not None and tokenizer.bos in tokenizer.surrounding_ids[0] else []
    buffer = _TokenBuffer()
    for chunk in chunks:
        if chunk.starts_text:
            yield from _final_window(buffer)
            buffer = _TokenBuffer(start)
        encoding = tokenizer.encode(chunk.text, special=False)
        buffer.add(encoding.ids, _counts(chunk.text, encoding))
        while len(buffer) > size:
            yield buffer.window(size)
            buffer.move(step, size)
    yield from _final_window(buffer)


def _final_window(buffer: _TokenBuffer) -> Iterator[TextWindow]:
    if len(buffer) > buffer.first_scored:
        yield buffer.window(len(buffer))


def _counts(text: str, encoding: Encoding) -> Ints:
    """(N, 2) the number of characters that end with each token, and of words that begin in it. Sums are exact."""
    if not len(encoding):
        return np.zeros((0, 2), np.int64)
    ends: Ints = np.maximum.accumulate(np.array(encoding.offsets, np.int64)[:, 1])
    ends[-1] = len(text)
    words = np.searchsorted([match.start() for match in WORD.finditer(text)], ends)
    return np.stack((np.diff(ends, prepend=0), np.diff(words, prepend=0)), 1)
