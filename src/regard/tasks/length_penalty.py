"""The length penalty of beam search, chosen on validation rows.

In plain terms, it is chosen as follows:
1. Beam search translates each row once, with a length penalty of 1, and keeps all ended sequences of a row.
2. For each penalty of a grid, the sequences of a row are ranked again by the sum of their log-probabilities divided by
   length ** penalty (Wu et al. 2016, https://arxiv.org/abs/1609.08144), and the best ones are scored.
3. The penalty with the best score is taken; of equal ones, the one nearest to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.sequences import token_batches
from regard.data.records import Record
from regard.generate.generator import Continuation, TextGenerator
from regard.tasks.greedy import DecodedSequence
from regard.tasks.task import Task

GRID = tuple(step / 5 for step in range(11))  # 0 to 2


@torch.inference_mode()
def length_penalty_scores(
    task: Task,
    generator: TextGenerator,
    records: Sequence[Record],
    preprocessing: Preprocessing,
    *,
    beams: int,
    batch_tokens: int,
) -> dict[float, float]:
    """The main score of the records for each length penalty."""
    task = task.bind(preprocessing)
    rows = task.examples(records, preprocessing, labeled=False)
    sources = [rows.take([row]).tokens.ids.tolist() for row in range(len(rows))]
    lengths = [len(source) for source in sources]
    candidates: list[list[Continuation]] = [[] for _ in sources]
    for batch in token_batches(lengths, max(batch_tokens // beams, max(lengths))):
        limits = rows.by_sequence["max_new_tokens"][batch].clip(min=1).tolist()
        options = {"beams": beams, "best": beams, "length_penalty": 1.0, "max_tokens": max(limits)}
        results = generator.continuations([sources[row] for row in batch], options, max_new_tokens=limits)
        for row, continuations in zip(batch, results, strict=True):
            candidates[row] = continuations
    scores = {}
    for penalty in GRID:
        meter = task.meter()
        windows: list[list[DecodedSequence]] = [[] for _ in records]
        for owner, continuations in zip(rows.owners.tolist(), candidates, strict=True):
            windows[owner].append(best_continuation(continuations, penalty))
        for record, outputs in zip(records, windows, strict=True):
            task.update(meter, task.answer(record, outputs), record)
        scores[penalty] = meter.scores()[meter.main].value
    return scores


def best_continuation(continuations: Iterable[Continuation], penalty: float) -> DecodedSequence:
    """The sequence with the best score for this length penalty."""
    best = max(continuations, key=lambda one: sum(one.log_probs) / len(one.ids) ** penalty)
    return DecodedSequence.of(best.ids, best.score, why=best.finish_reason)


def best_length_penalty(scores: dict[float, float]) -> float:
    """The penalty with the best score; of equal ones, the one nearest to 1."""
    return max(scores, key=lambda penalty: (scores[penalty], -abs(penalty - 1)))
