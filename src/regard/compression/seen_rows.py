"""Whether a teacher was trained on the rows that it is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.data.records import Record
from regard.predict.model_task import seen_rows


def seen_note(folder: Path | None, test: Sequence[Record]) -> str | None:
    """A note if the model in this folder was trained on some of the test rows; None if not, or if nothing is known."""
    seen = seen_rows(folder, test)
    if seen is None or seen.words is None:
        return None
    return (
        f"{seen.words} of the test are also in the training data of the teacher, so it scores higher on them than on "
        "new ones, and students seem worse than they are. Give test rows that it has not seen"
    )
