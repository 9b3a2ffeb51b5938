"""A remark on the final scores: that few rows say little, or that the model may be no better than guessing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from regard.data.records import ClassifyRecord, PairRecord
from regard.errors import pluralize
from regard.metrics.confidence import Score
from regard.tasks.inference import ScoreResult
from regard.tasks.task import RowOutputs

FEW_ROWS = 20  # validation rows, below which a score says little
MAX_NAMED = 3  # labels without validation rows that are named; more are counted


def score_note(
    rows: Sequence[RowOutputs], scores: ScoreResult | None, *, split_off: bool, labels: Sequence[str] = ()
) -> str | None:
    """A remark on scores of few rows, or of a classifier that may be no better than its most frequent class; else None.

    split_off: the rows were split off from the training data, so that cross-validation could score more.
    labels: all labels of the task.
    """
    records = [row.record for row in rows if isinstance(row.record, ClassifyRecord | PairRecord)]
    if scores is None or not records:
        return None
    counts = Counter(record.label for record in records if isinstance(record.label, str))
    accuracy = scores.scores.get("accuracy")
    guessing = _guessing(accuracy, counts, len(rows)) if accuracy is not None and counts else None
    if len(rows) >= FEW_ROWS or not split_off:
        return guessing if len(rows) >= FEW_ROWS else None
    missing = _without_rows(labels, counts) if counts else ""
    few = f"scores of {pluralize(len(rows), 'validation row')} say little{missing}"
    advice = "--folds 5 (regard.cross_validate) scores every row"
    return f"{few}; {advice}" if guessing is None else f"{few}, and are {guessing}; {advice}"


def _guessing(accuracy: Score, counts: Counter[str], rows: int) -> str | None:
    """How often the most frequent label would be right, unless the model is clearly better."""
    label, count = counts.most_common(1)[0]
    share = count / rows
    if not (accuracy.value if rows < FEW_ROWS else accuracy.low) <= share < 1:
        return None
    often = f'always "{label}" would be right for {share:.1%} of the validation rows'
    if accuracy.value > share:
        return f"not clearly better than guessing: {often}, the model for {accuracy.low:.1%} to {accuracy.high:.1%}"
    return f"no better than guessing: {often}, the model is right for {accuracy.value:.1%}"


def _without_rows(labels: Sequence[str], counts: Counter[str]) -> str:
    """The labels that no validation row has, in brackets; an empty text if there is none."""
    missing = [label for label in labels if label not in counts]
    if not missing:
        return ""
    if len(missing) > MAX_NAMED:
        return f" (none has one of {len(missing)} of the {len(labels)} labels)"
    names = [f'"{label}"' for label in missing]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return f" (none has the label {listed})"
