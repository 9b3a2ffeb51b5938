"""Whether a teacher is worth compressing: a classifier that answers one label for all rows is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from regard.compression.result import CandidateResult
from regard.data.records import ClassifyRecord, PairRecord, Record

ACCURACY = "accuracy"


def weak_teacher_note(teacher: CandidateResult, test: Sequence[Record]) -> str | None:
    """A note if the teacher is not better than always answering the most frequent label of the test rows."""
    labels = Counter(
        record.label for record in test if isinstance(record, ClassifyRecord | PairRecord) and type(record.label) is str
    )
    if not labels or ACCURACY not in teacher.scores:
        return None
    name, count = labels.most_common(1)[0]
    accuracy = teacher.scores[ACCURACY].value
    if accuracy * len(test) > count + 0.5:
        return None
    return (
        f"the teacher has an accuracy of {accuracy:.4f} on the test rows, not more than always answering the most "
        f'frequent label, "{name}" ({count / len(test):.4f}). Train it for longer, or check the labels, before you '
        "compress it"
    )
