"""Special tokens around one text or a pair of texts, and windows over texts that are too long for a network.

    frame = Frame.of(tokenizer)
    question, context = (tokenizer.encode(text, special=False) for text in (asked, passage))
    for sequence in context_windows(frame, question.ids, context.ids, max_tokens=384):
        sequence.ids, sequence.segments  # for the network
        sequence.texts, sequence.tokens, sequence.own  # per position: its text, the token in it, whether it is owned

Texts are tokenized once and alone, however many windows they have, so that offsets and words stay those of the text:
token `sequence.tokens[i]` of text `sequence.texts[i]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from regard.data.batching.windows import Window, paired_windows, windows
from regard.errors import InputError, pluralize
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer


class SpecialTokens(NamedTuple):
    """Adjacent special tokens."""

    ids: tuple[int, ...] = ()
    segments: tuple[int, ...] = ()


class Part(NamedTuple):
    """A window of a text in a sequence; its tokens start at position `at`."""

    text: int
    at: int
    window: Window

    @property
    def positions(self) -> slice:
        """The positions of the window in the sequence."""
        return slice(self.at, self.at + len(self.window))

    @property
    def owned(self) -> slice:
        """The positions of the tokens that this sequence owns."""
        own = self.window.own
        return slice(self.at + own.start, self.at + own.stop)


@dataclass(frozen=True)
class FramedSequence:
    """A sequence for the network, with the text and token that each position comes from."""

    ids: list[int]
    segments: list[int]
    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def texts(self) -> list[int | None]:
        """For each position the text, 0 or 1; None for special tokens."""
        values: list[int | None] = [None] * len(self)
        for part in self.parts:
            values[part.positions] = [part.text] * len(part.window)
        return values

    @property
    def tokens(self) -> list[int | None]:
        """For each position the index of the token in its text; None for special tokens."""
        values: list[int | None] = [None] * len(self)
        for part in self.parts:
            values[part.positions] = range(part.window.start, part.window.end)
        return values

    @property
    def own(self) -> list[bool]:
        """For each position whether this sequence owns its token: exactly one window owns each token."""
        values = [False] * len(self)
        for part in self.parts:
            values[part.owned] = [True] * (part.window.own_end - part.window.own_start)
        return values

    def position(self, text: int, token: int) -> int | None:
        """The position of a token of a text; None if it is not in this window."""
        for part in self.parts:
            if part.text == text and part.window.start <= token < part.window.end:
                return part.at + token - part.window.start
        return None


@dataclass(frozen=True)
class Frame:
    """The special tokens of a tokenizer with their segments: `[CLS] first [SEP] second [SEP]`."""

    alone: tuple[SpecialTokens, SpecialTokens]  # before and after a single text
    before: SpecialTokens  # before, between and after the texts of a pair
    between: SpecialTokens
    after: SpecialTokens
    segment: int = 0  # of a single text
    segments: tuple[int, int] = (0, 1)  # of the texts of a pair

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Frame:
        """As the tokenizer's post-processor adds them, found by encoding a short text and a short pair."""
        text = tokenizer.short_text
        (start, end), (segment,) = _special_tokens(tokenizer.encode(text), (0,))
        (before, between, after), (first, second) = _special_tokens(tokenizer.encode(text, text), (0, 1))
        return cls((start, end), before, between, after, segment, (first, second))

    def single(self, ids: Sequence[int], window: Window | None = None) -> FramedSequence:
        """A text, or a window of it, as the tokenizer would give it."""
        return _join(self.alone, (self.segment,), (ids,), (window or _whole(ids),))

    def pair(
        self, first: Sequence[int], second: Sequence[int], cuts: tuple[Window | None, Window | None] = (None, None)
    ) -> FramedSequence:
        """Two texts, or a window of each, as the tokenizer would give them."""
        shown = (cuts[0] or _whole(first), cuts[1] or _whole(second))
        return _join((self.before, self.between, self.after), self.segments, (first, second), shown)

    @property
    def special_count(self) -> int:
        """The number of special tokens around a single text."""
        return sum(len(special_tokens.ids) for special_tokens in self.alone)

    @property
    def pair_special_count(self) -> int:
        """The number of special tokens around a pair."""
        return len(self.before.ids) + len(self.between.ids) + len(self.after.ids)


def single_windows(
    frame: Frame, ids: Sequence[int], *, max_tokens: int | None, overlap: float = 0.25
) -> list[FramedSequence]:
    """A text in sequences of at most `max_tokens`; `overlap` is the fraction that adjacent windows share."""
    if max_tokens is None or len(ids) + frame.special_count <= max_tokens:
        return [frame.single(ids)]
    capacity = max_tokens - frame.special_count
    if capacity < 1:
        raise window_too_small(max_tokens, frame.special_count)
    return [
        frame.single(ids, cut) for cut in windows(len(ids), size=capacity, overlap=_overlap_tokens(capacity, overlap))
    ]


def context_windows(
    frame: Frame, question: Sequence[int], context: Sequence[int], *, max_tokens: int | None, overlap: float = 0.25
) -> list[FramedSequence]:
    """The whole question (text 0) with each window of the context (text 1); the first window owns the question."""
    fixed = frame.pair_special_count + len(question)
    if max_tokens is None or fixed + len(context) <= max_tokens:
        return [frame.pair(question, context)]
    capacity = max_tokens - fixed
    if capacity < 1:
        raise InputError(
            f"the question has {pluralize(len(question), 'token')}: with {frame.pair_special_count} special tokens, "
            f"nothing is left for the context in a window of {max_tokens} tokens. Shorten the question, or use windows "
            f"of more than {fixed} tokens."
        )
    cuts = windows(len(context), size=capacity, overlap=_overlap_tokens(capacity, overlap))
    question_windows = [_whole(question), *[_whole(question).context_only] * (len(cuts) - 1)]
    return [frame.pair(question, context, both) for both in zip(question_windows, cuts, strict=True)]


def pair_windows(
    frame: Frame, first: Sequence[int], second: Sequence[int], *, max_tokens: int | None, overlap: float = 0.25
) -> list[FramedSequence]:
    """Two texts of which one or both may be long: every token of each is in some window, and one window owns it."""
    if max_tokens is None or len(first) + len(second) + frame.pair_special_count <= max_tokens:
        return [frame.pair(first, second)]
    capacity = max_tokens - frame.pair_special_count
    if capacity < 2:
        raise window_too_small(max_tokens, frame.pair_special_count, 2)
    cuts = paired_windows(len(first), len(second), size=capacity, overlap=_checked_overlap(overlap))
    return [frame.pair(first, second, both) for both in cuts]


def window_too_small(max_tokens: int, special: int, text_tokens: int = 1) -> InputError:
    """The error for windows that are too small for the special tokens and a text."""
    return InputError(
        f"windows of {max_tokens} tokens are too small for a text and {special} special tokens; "
        f"use at least {special + text_tokens}."
    )


def _checked_overlap(overlap: float) -> float:
    if not 0 <= overlap < 1:
        raise InputError(
            f"windows cannot share {overlap:g} of their tokens; use a fraction from 0 up to but not including 1."
        )
    return overlap


def _overlap_tokens(capacity: int, overlap: float) -> int:
    return int(capacity * _checked_overlap(overlap))


def _whole(ids: Sequence[int]) -> Window:
    return Window(0, len(ids), 0, len(ids))


def _join(
    special_tokens: Sequence[SpecialTokens],
    segments: Sequence[int],
    texts: Sequence[Sequence[int]],
    cuts: Sequence[Window],
) -> FramedSequence:
    ids, segments_out, parts = list(special_tokens[0].ids), list(special_tokens[0].segments), []
    for number, (text, cut, segment, mark) in enumerate(zip(texts, cuts, segments, special_tokens[1:], strict=True)):
        parts.append(Part(number, len(ids), cut))
        ids += text[cut.start : cut.end]
        segments_out += [segment] * len(cut)
        ids += mark.ids
        segments_out += mark.segments
    return FramedSequence(ids, segments_out, tuple(parts))


def _special_tokens(values: Encoding, order: tuple[int, ...]) -> tuple[list[SpecialTokens], list[int]]:
    """The special tokens before, between and after the texts, and the segment of each text."""
    runs = [
        (text, list(positions)) for text, positions in groupby(range(len(values)), key=values.sequence_ids.__getitem__)
    ]
    if tuple(text for text, _ in runs if text is not None) != order:
        raise InputError(
            "this tokenizer puts the second text before the first, or splits a text; expected one text, or the first "
            'text and then the second. Change "post_processor" in tokenizer.json.'
        )
    special_tokens, segments = [SpecialTokens()], []
    for text, positions in runs:
        segments_out = tuple(values.segments[position] for position in positions)
        if text is None:
            special_tokens[-1] = SpecialTokens(tuple(values.ids[position] for position in positions), segments_out)
        else:
            special_tokens.append(SpecialTokens())
            segments.append(segments_out[0])
    return special_tokens, segments
