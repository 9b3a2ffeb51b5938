"""Tokens of texts. The tokenizer has all that the answer needs, so nothing waits for the model."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from regard.data.batching.sequences import split_into_windows
from regard.errors import InputError
from regard.predict.model import Model
from regard.serve.operations.operation import Operation, Prepared
from regard.serve.served import Item


class TokenizeOperation(Operation):
    """Tokens with ids and offsets in code points."""

    runs = False

    def __init__(self, model: Model, *, special: bool = True) -> None:
        super().__init__(model)
        model.require_tokenizer()
        self.special = special

    @property
    def group(self) -> Hashable:
        return ("tokenize", self.special)

    def prepare(self, items: Sequence[Item]) -> list[Prepared]:
        for number, item in enumerate(items):
            if not isinstance(item, str):
                raise InputError(f"text {number} is {item!r:.80} ({type(item).__name__}); expected a text.")
        answers = [tokenized(self.model, item, special=self.special) for item in items]
        return [Prepared((len(answer["ids"]),), answer) for answer in answers]

    def run(self, rows: Sequence[tuple[Prepared, int]]) -> list[Any]:
        return [prepared.payload for prepared, _ in rows]

    def answer(self, prepared: Prepared, outputs: Sequence[Any]) -> dict[str, Any]:
        answer: dict[str, Any] = prepared.payload
        return answer


def tokenized(model: Model, text: str, *, special: bool) -> dict[str, Any]:
    """The tokens of a text with their ids and offsets in code points."""
    tokenizer = model.require_tokenizer()
    encoding = tokenizer.encode(text, special=special)
    ids = list(encoding.ids)
    windows = 1
    if not all(encoding.special):
        windows = len(list(split_into_windows(0, encoding, model.config.max_tokens)))
    return {
        "ids": ids,
        "tokens": [tokenizer.backend.id_to_token(token) or "" for token in ids],
        "offsets": [list(offset) for offset in encoding.offsets],
        "special": list(encoding.special),
        "truncated": False,
        "windows": windows,
    }
