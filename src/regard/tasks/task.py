"""What a task is: how its records become a batch, its head, its loss, its answers, its score.

The training loop, the server and the report know no task by name; they know this. A task is a frozen value: what it
learned from the data (its labels, a threshold) is in its fields, and `settings()` is what a folder keeps of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from regard.config import Config
from regard.data.examples import Examples, Inputs
from regard.data.records import Record
from regard.errors import InputError
from regard.metrics.meter import Meter
from regard.model.network import Network
from regard.model.transformer import Output
from regard.tasks.recipe import Recipe
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Loss:
    """A sum and how much it is the sum of: the loop divides once, whatever the batches were."""

    sum: Tensor
    count: Tensor


@dataclass(frozen=True)
class Reading:
    """What texts are read with: the tokenizer of a network, and how long a sequence it may be given."""

    tokenizer: Tokenizer
    config: Config
    window: int | None = None  # most tokens of a sequence; as many as the network has places for when None
    overlap: float = 0.25  # share of a window that its neighbour shows too
    start: int | None = None  # the token a decoder beside an encoder begins with, where its folder says so
    prefix: str = ""  # what a model wants before every text (T5)

    @property
    def longest(self) -> int | None:
        places = self.config.longest
        if self.window is None or places is None:
            return self.window or places
        return min(self.window, places)

    @property
    def segments(self) -> bool:
        return self.config.segments > 1


@dataclass(frozen=True)
class Answer:
    """What every answer carries besides its own fields. Nothing is ever cut: `truncated` is there to say so."""

    windows: int = 1
    truncated: bool = False

    def json(self) -> dict[str, Any]:
        own = {name: plain(value) for name, value in asdict(self).items() if name not in ("windows", "truncated")}
        return {**own, "truncated": self.truncated, "windows": self.windows}


def plain(value: Any) -> Any:
    """A value as JSON reads it back: tuples are lists, those with names are objects."""
    if isinstance(value, tuple | list):
        named = getattr(value, "_asdict", None)
        return [plain(one) for one in value] if named is None else named()
    return value


class Task(ABC):
    """The contract. One file a task, one line in `TASKS`, one row in the contract battery."""

    name: ClassVar[str]
    record: ClassVar[type[Any]]  # the kind of record it reads
    steady: ClassVar[bool] = True  # whether its batches can be brought to a fixed shape, for a compiled step
    network: ClassVar[str | None] = None  # the kind of network it needs, where not every kind will do
    at_once: ClassVar[int] = 2048  # records held while they are answered
    sample: ClassVar[int | None] = None  # most dev rows that are scored while it is trained; all where None

    @classmethod
    @abstractmethod
    def learn(cls, records: Iterable[Record], **settings: Any) -> Self:
        """The task these training records set: its labels, its kind. One pass over the records."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What a folder keeps of the task, as JSON; `restore` reads it."""

    @classmethod
    @abstractmethod
    def restore(cls, settings: Mapping[str, Any]) -> Self:
        """The task a folder kept."""

    @classmethod
    def recipe(cls, config: Config | None, rows: int) -> Recipe:
        """How it is usually trained on so many rows: from nothing with these settings, or fine-tuned where None."""
        return Recipe()

    @property
    @abstractmethod
    def heads(self) -> dict[str, int]:
        """The heads its network needs, with their numbers of classes."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, for config.json."""
        return None

    @property
    def parts(self) -> bool:
        """Whether a step may be done in parts: its loss is the sum of theirs."""
        return True

    @property
    def problem(self) -> str | None:
        """`problem_type` in config.json, where there is one."""
        return None

    @property
    def signatures(self) -> dict[str, str]:
        """How scores were counted, by name, where the name alone does not say it."""
        return {}

    def reads(self, reading: Reading) -> Self:
        """The task with what its answers are written with; itself, unless a task says so."""
        return self

    @abstractmethod
    def examples(self, records: Sequence[Record], reading: Reading, *, labelled: bool) -> Examples:
        """Sequences of these records, long ones in windows; with targets where they are `labelled`."""

    def prepare(self, inputs: Inputs) -> Inputs:
        """What is drawn anew each time a batch is read, on its device: masks, noise. Nothing, unless a task says so."""
        return inputs

    @abstractmethod
    def loss(self, output: Output, inputs: Inputs) -> Loss:
        """The loss of a batch; what has no target (`IGNORE`, NaN) has no part in it."""

    def run(self, network: Network, inputs: Inputs) -> Output:
        """What the network says of a batch that is to be answered; a task that writes lets it write."""
        output: Output = network(inputs.tokens, inputs.target, at=inputs.at)
        return output

    @abstractmethod
    def read(self, output: Output, inputs: Inputs) -> list[Any]:
        """What each of the first `inputs.rows` sequences says, as small values off the device."""

    @abstractmethod
    def answer(self, record: Record, said: Sequence[Any]) -> Answer:
        """The answer for a record from what its windows said."""

    @abstractmethod
    def meter(self) -> Meter:
        """Scores, from answers one after the other."""

    @abstractmethod
    def mark(self, meter: Meter, answer: Answer, record: Record) -> None:
        """Hold an answer against what its record says."""

    def tuned(self, meter: Meter) -> Self:
        """The task with what is best chosen on dev once it is trained, a threshold; itself, unless a task says so."""
        return self


def drawn_on(device_of: Tensor, values: Sequence[float]) -> Tensor:
    """Numbers made on the device itself: a copy from the host could not be recorded."""
    return torch.cat([device_of.new_full((1,), value) for value in values])


def refuse(why: str, *, balance: str = "none", smoothing: float = 0.0) -> None:
    """Say so where a setting for labels was given that would do nothing. `why` ends the sentence."""
    if balance != "none" or smoothing:
        given = f'balance "{balance}"' if balance != "none" else f"smoothing {smoothing:g}"
        raise InputError(f"{given} is for labels, and {why}. Leave it out.")


def weighted(losses: Tensor, weights: Tensor, keep: Tensor) -> Loss:
    """Losses times weights where `keep`, and the sum of those weights."""
    weights = torch.where(keep, weights, 0.0)
    return Loss((torch.where(keep, losses, 0.0) * weights).sum(), weights.sum())
