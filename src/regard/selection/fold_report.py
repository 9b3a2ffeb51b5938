"""The scores of a cross-validation in the files of the model that was trained on all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from regard.metrics.meter import Meter
from regard.selection.run_notes import add_to_run, write_pages


def add_fold_scores(folder: Path, meter: Meter, folds: Sequence[Mapping[str, float]]) -> None:
    """Write the scores into run.json, the report and the model card."""
    scores = {name: asdict(score) for name, score in meter.scores().items()}
    add_to_run(folder, "cross_validation", {"folds": folds, "scores": scores})
    write_pages(folder, meter)
