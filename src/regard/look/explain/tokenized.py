"""A text as a network reads it, with what connects the positions of its sequences to the words of the text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.data.batching.framing import Frame, FramedSequence
from regard.errors import InputError
from regard.look.explain.words import is_unspaced, word_spans
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer


class WordSpan(NamedTuple):
    """A word: its text (0, or 1 for the second), its characters, and its tokens."""

    sequence: int
    start: int
    end: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class InputSequence:
    """One sequence of the network: a text, or a window of a longer one.

    index: for each position of `ids`, then of `decoder_ids`, the token of the text.
    """

    ids: tuple[int, ...]
    segments: tuple[int, ...] | None
    index: tuple[int, ...]
    decoder_ids: tuple[int, ...] | None = None

    @property
    def all_ids(self) -> tuple[int, ...]:
        """The ids of the encoder, then those of the decoder."""
        return self.ids + (self.decoder_ids or ())


@dataclass(frozen=True)
class TokenizedText:
    """One or two texts as tokens; every tuple but `texts`, `words` and `sequences` has one entry per token.

    erasable: whether an explanation may erase the token: not special tokens, nor what a target needs.
    """

    texts: tuple[str, ...]
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    sequence_ids: tuple[int | None, ...]
    erasable: tuple[bool, ...]
    words: tuple[WordSpan, ...]
    sequences: tuple[InputSequence, ...]
    note: str | None = None  # what part of a long text was read

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def erasable_words(self) -> tuple[int, ...]:
        """The numbers of the words that have a token which may be erased."""
        return tuple(number for number, word in enumerate(self.words) if any(self.erasable[i] for i in word.tokens))


def group_words(
    texts: Sequence[str], offsets: Sequence[tuple[int, int]], sequence_ids: Sequence[int | None]
) -> tuple[WordSpan, ...]:
    """The words of the texts that have tokens, in order.

    A token of several words ("[MASK]") or of none (a space) is its own word, and so is every token of a script without
    spaces between words.
    """
    words: list[WordSpan] = []
    for sequence, text in enumerate(texts):
        spans = word_spans(text)
        starts = [start for start, _ in spans]
        members: dict[tuple[int, int], list[int]] = {}
        for token, (start, end) in enumerate(offsets):
            if sequence_ids[token] != sequence or start >= end:
                continue
            first = start + len(text[start:end]) - len(text[start:end].lstrip())  # a token may start with a space
            number = bisect_right(starts, first) - 1
            inside = number >= 0 and first < spans[number][1] and not is_unspaced(text[slice(*spans[number])])
            last = first + len(text[first:end].rstrip())
            span = spans[number] if inside else (start, end)
            if inside and first == span[0] and last > span[1]:  # a token of several words, such as [MASK]
                span = (first, last)
            members.setdefault(span, []).append(token)
        words += [WordSpan(sequence, *span, tuple(tokens)) for span, tokens in sorted(members.items())]
    return tuple(words)


def token_names(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """The tokens of these ids, as the vocabulary writes them."""
    return tuple(tokenizer.backend.id_to_token(token) or "" for token in ids)


def from_windows(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    encodings: Sequence[Encoding],
    windows: Sequence[FramedSequence],
    *,
    segments: bool,
) -> TokenizedText:
    """One or two texts, encoded without special tokens, in one or several windows."""
    frame = Frame.of(tokenizer)
    if sum(len(encoding) for encoding in encodings) == 0:
        raise InputError("the text has no token this tokenizer can read. Give it words.")
    whole = frame.single(encodings[0].ids) if len(encodings) == 1 else frame.pair(encodings[0].ids, encodings[1].ids)
    places = {(text, token): i for i, (text, token) in enumerate(zip(whole.texts, whole.tokens, strict=True))}
    special = [i for i, text in enumerate(whole.texts) if text is None]
    offsets = tuple(
        (0, 0) if text is None or token is None else encodings[text].offsets[token]
        for text, token in zip(whole.texts, whole.tokens, strict=True)
    )
    sequences = []
    for window in windows:
        own = iter(special)
        index = tuple(
            next(own) if text is None else places[text, token]
            for text, token in zip(window.texts, window.tokens, strict=True)
        )
        sequences.append(InputSequence(tuple(window.ids), tuple(window.segments) if segments else None, index))
    return TokenizedText(
        texts=tuple(texts),
        tokens=token_names(tokenizer, whole.ids),
        offsets=offsets,
        sequence_ids=tuple(whole.texts),
        erasable=tuple(text is not None for text in whole.texts),
        words=group_words(texts, offsets, whole.texts),
        sequences=tuple(sequences),
    )


def from_encoding(
    tokenizer: Tokenizer, text: str, encoding: Encoding, *, segments: bool, protect: Sequence[int] = ()
) -> TokenizedText:
    """A text in one sequence, encoded with its special tokens; the tokens `protect` are never erased."""
    erasable = tuple(
        sequence is not None and i not in protect and encoding.ids[i] not in tokenizer.special.values()
        for i, sequence in enumerate(encoding.sequence_ids)
    )
    row = InputSequence(encoding.ids, encoding.segments if segments else None, tuple(range(len(encoding))))
    return TokenizedText(
        texts=(text,),
        tokens=token_names(tokenizer, encoding.ids),
        offsets=encoding.offsets,
        sequence_ids=encoding.sequence_ids,
        erasable=erasable,
        words=group_words((text,), encoding.offsets, encoding.sequence_ids),
        sequences=(row,),
    )
