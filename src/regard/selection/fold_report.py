"""The scores of a cross-validation in the files of the model that was trained on all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from regard.checkpoint.files import read_json
from regard.checkpoint.folder import read_folder
from regard.checkpoint.manifest import CARD, REPORT, RUN
from regard.data.atomic import atomic_text_file
from regard.metrics.meter import Meter
from regard.metrics.report import report_of
from regard.report.facts import RunFacts
from regard.report.model_card import model_card
from regard.report.page import report_page
from regard.selection.run_notes import add_to_run
from regard.training.output.metrics_log import read_metrics


def add_fold_scores(folder: Path, meter: Meter, folds: Sequence[Mapping[str, float]]) -> None:
    """Write the scores into run.json, the report and the model card."""
    scores = {name: asdict(score) for name, score in meter.scores().items()}
    add_to_run(folder, "cross_validation", {"folds": folds, "scores": scores})
    run = read_json(folder, RUN)
    facts = RunFacts.of(
        read_folder(folder, weights=False),
        {**run, "scores": scores, "main": meter.main, "data": {**run["data"], "dev_rows": meter.rows}},
        name=folder.name,
        events=read_metrics(folder),
        report=report_of(meter),
    )
    for name, content in ((CARD, model_card(facts)), (REPORT, report_page(facts))):
        with atomic_text_file(folder / name) as file:
            file.write(content)
