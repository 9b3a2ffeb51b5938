"""The tokens of a text, with their positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tokenizers


@dataclass(frozen=True)
class Encoding:
    """The tokens of a text or a pair of texts. Every field has one entry per token."""

    ids: tuple[int, ...]
    segments: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]  # start and end (exclusive) in the text, in code points
    word_ids: tuple[int | None, ...]  # index of the word in its text; None for special tokens
    special: tuple[bool, ...]  # True for special tokens added by the tokenizer
    sequence_ids: tuple[int | None, ...]  # 0: first text, 1: second text; None for special tokens

    @classmethod
    def from_backend(cls, source: tokenizers.Encoding) -> Encoding:
        """From an encoding of the `tokenizers` library. Fields are computed on first use: offsets are slow."""
        encoding = object.__new__(cls)
        encoding.__dict__["_source"] = source
        return encoding

    def __getattr__(self, name: str) -> Any:
        source = self.__dict__.get("_source")
        if name not in _FIELDS or source is None:
            raise AttributeError(f"Encoding has no attribute {name!r}.")
        value = _FIELDS[name](source)
        self.__dict__[name] = value
        return value

    def __len__(self) -> int:
        return len(self.ids)


_FIELDS: dict[str, Callable[[tokenizers.Encoding], tuple[Any, ...]]] = {
    "ids": lambda source: tuple(source.ids),
    "segments": lambda source: tuple(source.type_ids),
    "offsets": lambda source: tuple(source.offsets),
    "word_ids": lambda source: tuple(source.word_ids),
    "special": lambda source: tuple(map(bool, source.special_tokens_mask)),
    "sequence_ids": lambda source: tuple(source.sequence_ids),
}
