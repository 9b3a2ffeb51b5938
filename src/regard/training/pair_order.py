"""Text pairs in both orders, for labels that do not depend on which of the two texts is the first.

Whether two sentences mean the same does not depend on their order; whether one follows from the other does. Where a
training is repeated, the first one shows which it is: it reads the pairs as they are, and is then scored on validation
rows with swapped texts. If these are answered as well, the other trainings read the pairs in both orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from regard.data.batching.examples import Examples, join_examples
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import PairRecord, Record
from regard.errors import InputError, setting
from regard.tasks.inference import ScoreResult
from regard.tasks.task import Task
from regard.training.engine.sampling import SampledRows
from regard.training.job import BatchSource, TrainingJob
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent
from regard.training.settings import Settings
from regard.training.validation import RecordValidation

MAX_DROP = 0.04  # of the main score with swapped texts, up to which their order is taken not to matter;
INTERVAL = 2 * 1.96  # or its standard error, if that is more: the 95 % interval has so many of them


@dataclass(frozen=True, eq=False)
class BothOrders:
    """Pairs in both orders: in each epoch, half of them are swapped; in the next epoch, the other half.

    examples: the sequences of all records as they are given, then those of the same records with swapped texts.
    """

    examples: Examples
    seed: int

    @classmethod
    def of(
        cls, original: Examples, task: Task, records: Sequence[Record], preprocessing: Preprocessing, *, seed: int
    ) -> BothOrders:
        """original: the sequences of the records as they are."""
        turned = task.examples(swapped(records), preprocessing, labeled=True)
        return cls(join_examples((original, turned)), seed)

    @property
    def max_tokens(self) -> int:
        """The maximum length of a sequence in any epoch."""
        return self.examples.max_length

    def epoch(self, number: int) -> SampledRows:
        owners = self.examples.owners
        records = (int(owners.max()) + 1) // 2
        turns = np.random.default_rng(self.seed).random(records) < 0.5
        if number % 2:
            turns = ~turns
        return SampledRows(self.examples, np.flatnonzero((owners >= records) == turns[owners % records]))


@dataclass(frozen=True)
class PairOrderScores:
    """The main score of the validation rows as they are, and with swapped texts."""

    main: str
    original: float
    swapped: float
    limit: float = MAX_DROP  # of the difference, up to which the order is taken not to matter

    @classmethod
    def of(cls, original: float, result: ScoreResult) -> PairOrderScores:
        """original: the score of the rows as they are. result: the scores with swapped texts."""
        score = result.scores[result.main]
        return cls(result.main, original, score.value, max(MAX_DROP, (score.high - score.low) / INTERVAL))

    @property
    def are_close(self) -> bool:
        """Whether the order of the two texts seems not to matter."""
        return self.original - self.swapped <= self.limit

    def __str__(self) -> str:
        return f"validation {self.main} {self.original:.4g}, with swapped texts {self.swapped:.4g}"


class OrderCheck:
    """Decides which rows repeated trainings read.

    scores: what the decision is based on, once it is known. both_orders: the decision.
    """

    def __init__(
        self, original: Examples, records: Sequence[Record], dev: Sequence[Record], preprocessing: Preprocessing
    ) -> None:
        self.original, self.records, self.dev, self.preprocessing = original, records, dev, preprocessing
        self.scores: PairOrderScores | None = None
        self.both_orders = False

    def source(self, job: TrainingJob, score: float | None, *, report: OnTrainingEvent) -> BatchSource:
        """The rows for trainings after the first, whose network the job has. score: its main score, if it has one."""
        if score is not None and self.dev:
            result = RecordValidation(swapped(self.dev), self.preprocessing).score(job, sampled=True)
            self.scores = PairOrderScores.of(score, result) if result.higher else None
        if self.scores is None:
            return job.source
        if not self.scores.are_close:
            _note(f"the order of the two texts matters ({self.scores}): it stays as it is", job, report)
            return job.source
        both = BothOrders.of(self.original, job.task, self.records, self.preprocessing, seed=job.settings.seed)
        if both.max_tokens > self.original.max_length:  # of long texts, whose windows differ
            return job.source
        self.both_orders = True
        _note(f"the order of the two texts does not matter ({self.scores}): from now on, both are read", job, report)
        return both

    def details(self) -> dict[str, Any]:
        """What run.json says of the decision."""
        if self.scores is None:
            return {}
        return {"pair_order": {**asdict(self.scores), "both_orders": self.both_orders}}


def _note(text: str, job: TrainingJob, report: OnTrainingEvent) -> None:
    report(TrainingEvent("note", 0, job.steps, {"text": text}))


def check_both_orders(task: Task, settings: Settings, *, distilled: bool) -> None:
    """Raise InputError if both orders were asked for and are not possible."""
    if settings.both_orders != "yes":
        return
    words = f"{setting('both_orders', 'yes')} was given, but"
    if task.name != "pair":
        raise InputError(f"{words} the task is {task.name}; only pairs of texts have an order. Leave it out.")
    if distilled:
        raise InputError(f"{words} a teacher answers each pair in one order. Leave it out.")
    others = {
        setting("explainable"): settings.explainable,
        setting("class_balance", "sampling"): settings.class_balance == "sampling",
        setting("bpe_dropout"): settings.bpe_dropout > 0,
    }
    other = next((name for name, is_used in others.items() if is_used), None)
    if other is not None:
        raise InputError(f"{words} it cannot be combined with {other}. Leave one of them out.")


def swapped(records: Sequence[Record]) -> list[PairRecord]:
    """The same pairs, each with its second text first."""
    pairs = (record for record in records if isinstance(record, PairRecord))
    return [replace(pair, first=pair.second, second=pair.first) for pair in pairs]
