"""What the tokenizers of features share with those of the `tokenizers` library, so that every task can use them."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FILE = "features.json"


@dataclass(frozen=True)
class FeatureEncoding:
    """The features of a text, in the form of an encoding of the `tokenizers` library: each feature is a token."""

    ids: array[int]
    offsets: Sequence[tuple[int, int]]
    type_ids: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.type_ids is None:
            object.__setattr__(self, "type_ids", bytes(len(self.ids)))

    @property
    def sequence_ids(self) -> Sequence[int]:
        assert self.type_ids is not None
        return self.type_ids

    @property
    def word_ids(self) -> Sequence[int]:
        return range(len(self.ids))

    @property
    def special_tokens_mask(self) -> bytes:
        return bytes(len(self.ids))

    def followed_by(self, other: FeatureEncoding) -> FeatureEncoding:
        """The features of a pair of texts."""
        kinds = bytes(len(self.ids)) + b"\1" * len(other.ids)
        return FeatureEncoding(self.ids + other.ids, [*self.offsets, *other.offsets], kinds)


class FeatureBackend:
    """A tokenizer whose tokens are features of a text. Subclasses implement `encode_texts`, `size` and `settings`."""

    def encode_texts(self, texts: Sequence[str]) -> list[FeatureEncoding]:
        """The features of each text; at least one, so that no text is empty."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of features."""
        raise NotImplementedError

    def settings(self) -> Mapping[str, Any]:
        """What the file stores."""
        raise NotImplementedError

    @property
    def model(self) -> FeatureBackend:
        """Its class is the kind of the vocabulary."""
        return self

    def encode(self, text: str, pair: str | None = None, *, add_special_tokens: bool = True) -> FeatureEncoding:
        return self.encode_batch([text if pair is None else (text, pair)])[0]

    def encode_batch(self, rows: Sequence[Any], *, add_special_tokens: bool = True) -> list[FeatureEncoding]:
        """One encoding per text or pair of texts; there are no special tokens."""
        if not rows or isinstance(rows[0], str):
            return self.encode_texts(rows)
        firsts = self.encode_texts([first for first, _ in rows])
        seconds = self.encode_texts([second for _, second in rows])
        return [first.followed_by(second) for first, second in zip(firsts, seconds, strict=True)]

    encode_batch_fast = encode_batch

    def to_str(self, *, pretty: bool = False) -> str:
        return json.dumps(self.settings(), ensure_ascii=False, indent=1 if pretty else None)

    def get_vocab(self) -> dict[str, int]:
        return {}

    def get_vocab_size(self) -> int:
        return self.size

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        return {}

    def token_to_id(self, token: str) -> int | None:
        return None

    def id_to_token(self, number: int) -> str | None:
        return None

    def no_truncation(self) -> None:
        """Features are never truncated."""

    def no_padding(self) -> None:
        """Features are never padded."""
