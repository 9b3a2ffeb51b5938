"""Streaming of generated text: whole characters only, and stop texts are found across token boundaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.generate.settings import Word
from regard.text.tokenizer import Tokenizer

BROKEN = "\ufffd"  # what a tokenizer writes for an incomplete character
Decode = Callable[[Sequence[int]], str]


def truncate_at_stop(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop text."""
    matches = [start for stop in stops if (start := text.find(stop)) >= 0]
    return text[: min(matches)] if matches else text


def partial_stop_length(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end may be the start of a stop text."""
    longest_match = 0
    for stop in stops:
        sizes = range(min(len(stop) - 1, len(text)), longest_match, -1)
        longest_match = next((size for size in sizes if text.endswith(stop[:size])), longest_match)
    return longest_match


def _agree(first: str, second: str) -> int:
    """The length of the common prefix."""
    return next(
        (i for i, (left, right) in enumerate(zip(first, second, strict=False)) if left != right),
        min(len(first), len(second)),
    )


class TextStream:
    """Parts of text from growing ids; joined, they are the text of all ids up to a stop text.

    The text of the last token may still change with the next one (an incomplete character, a merge, a space before a
    period), so a part is returned once the text with one more token agrees on it.
    """

    def __init__(self, decode: Decode, stops: Sequence[str] = ()) -> None:
        self.decode, self.stops = decode, tuple(stops)
        self.emitted, self.before = 0, ""

    def add(self, ids: Sequence[int], *, last: bool = False) -> str:
        """The new text that is certain now; with `last`, all the remaining text."""
        text = self.decode(ids)
        sure = text if last else text[: _agree(text, self.before)]
        self.before = text
        whole = truncate_at_stop(sure, self.stops)
        if not last:
            sure = sure.rstrip(BROKEN)
            whole = whole[: min(len(whole), len(sure) - partial_stop_length(sure, self.stops))]
        piece = whole[self.emitted :]
        self.emitted += len(piece)
        return piece


def token_sequences(words: Sequence[Word], tokenizer: Tokenizer | None, *, every: bool) -> list[list[int]]:
    """Words as lists of ids; with `every`, both with and without a space before it, else the shorter of the two."""
    matches: list[list[int]] = []
    for word in words:
        if not isinstance(word, str):
            matches.append(list(word))
            continue
        assert tokenizer is not None
        choices = [list(tokenizer.encode(start + word, special=False).ids) for start in (" ", "")]
        matches += choices if every else [min(choices, key=len)]
    return [run for number, run in enumerate(matches) if run not in matches[:number]]
