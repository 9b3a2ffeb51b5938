"""Text out of tokens, piece by piece, no character or merge split; a text that stops is found across tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.generate.settings import Word
from regard.text.tokenizer import Tokenizer

BROKEN = "\ufffd"  # what a decoder writes for half a character
Decode = Callable[[Sequence[int]], str]


def truncate_at_stop(text: str, stops: Sequence[str]) -> str:
    """The text before the first of the stops."""
    found = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(found)] if found else text


def partial_stop_length(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end may be the beginning of a stop."""
    most = 0
    for stop in stops:
        sizes = range(min(len(stop) - 1, len(text)), most, -1)
        most = next((size for size in sizes if text.endswith(stop[:size])), most)
    return most


def _agree(one: str, other: str) -> int:
    """How many first characters are the same."""
    return next(
        (i for i, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other))
    )


class TextStream:
    """Growing ids to pieces of text that, joined, are the text of all ids up to a stop.

    The text of the last token may still change with the next one (half a character, a merge, a space before a full
    stop), so a piece is given out once the text with one more token agrees on it.
    """

    def __init__(self, decode: Decode, stops: Sequence[str] = ()) -> None:
        self.decode, self.stops = decode, tuple(stops)
        self.given, self.before = 0, ""

    def add(self, ids: Sequence[int], *, last: bool = False) -> str:
        """What is certain now and was not given out yet; `last` gives out the rest."""
        text = self.decode(ids)
        sure = text if last else text[: _agree(text, self.before)]
        self.before = text
        whole = truncate_at_stop(sure, self.stops)
        if not last:
            sure = sure.rstrip(BROKEN)
            whole = whole[: min(len(whole), len(sure) - partial_stop_length(sure, self.stops))]
        piece = whole[self.given :]
        self.given += len(piece)
        return piece


def token_sequences(words: Sequence[Word], tokenizer: Tokenizer | None, *, every: bool) -> list[list[int]]:
    """Words as runs of ids; `every` with and without a space before it, else the shorter of the two."""
    found: list[list[int]] = []
    for word in words:
        if not isinstance(word, str):
            found.append(list(word))
            continue
        assert tokenizer is not None
        choices = [list(tokenizer.encode(start + word, special=False).ids) for start in (" ", "")]
        found += choices if every else [min(choices, key=len)]
    return [run for number, run in enumerate(found) if run not in found[:number]]
