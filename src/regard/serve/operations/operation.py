"""What a request can ask of a model: from an item of a request to sequences, and from their outputs to an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from regard.predict.inputs import is_pair
from regard.predict.model import Model
from regard.serve.served import Item


@dataclass(frozen=True)
class Prepared:
    """An item after tokenization: the tokens of each of its sequences, and what `run` needs of it."""

    lengths: tuple[int, ...]
    payload: Any
    left: Event = field(default_factory=Event, compare=False)  # set when no client waits for it anymore


class Operation(ABC):
    """One computation with its options. Items of operations with the same `group` may run in one batch."""

    runs = True  # False if `prepare` has all that the answer needs

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    @abstractmethod
    def group(self) -> Hashable:
        """The name and the options."""

    @abstractmethod
    def prepare(self, items: Sequence[Item]) -> list[Prepared]:
        """The items as sequences. Raises RegardError for the first one that cannot be used; runs beside the model."""

    @abstractmethod
    def run(self, rows: Sequence[tuple[Prepared, int]]) -> list[Any]:
        """The output of each sequence, by item and index of the sequence."""

    @abstractmethod
    def answer(self, prepared: Prepared, outputs: Sequence[Any]) -> dict[str, Any]:
        """The answer as JSON, from the outputs of all sequences of an item."""


def as_input(item: Item) -> Any:
    """An item of a request as `Model.predict` takes it: two texts that belong together are a tuple there."""
    return tuple(item) if isinstance(item, list) else item


def is_pair_request(items: Sequence[Item]) -> bool:
    """Whether the first item is two texts, which decides for a model whose folder does not say it."""
    return bool(items) and is_pair(as_input(items[0]))
