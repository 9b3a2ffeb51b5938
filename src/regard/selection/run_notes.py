"""Facts that are added to the files of a finished training, and whether the final training has begun."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.checkpoint.files import read_json, write_json
from regard.checkpoint.folder import read_folder
from regard.checkpoint.manifest import CARD, REPORT, RUN
from regard.data.atomic import atomic_text_file
from regard.metrics.meter import Meter
from regard.metrics.report import report_of
from regard.report.facts import RunFacts
from regard.report.model_card import model_card
from regard.report.page import report_page
from regard.training.output.metrics_log import read_metrics

FINAL_MARK = "final"  # a file in the folder of a cross-validation or search


def add_to_run(folder: Path, name: str, value: Any) -> None:
    """Add a field to run.json."""
    new_file = folder / f".{RUN}.part"
    write_json(new_file, {**read_json(folder, RUN), name: value})
    new_file.replace(folder / RUN)


def write_pages(folder: Path, meter: Meter, **more: Any) -> None:
    """Write the report and the model card again, from run.json and the scores of rows that did not train the model.

    more: further fields of the facts, see `RunFacts`.
    """
    run = read_json(folder, RUN)
    scores = {name: asdict(score) for name, score in meter.scores().items()}
    facts = RunFacts.of(
        read_folder(folder, weights=False),
        {**run, "scores": scores, "main": meter.main, "data": {**run["data"], "dev_rows": meter.rows}},
        name=folder.name,
        events=read_metrics(folder),
        report=report_of(meter),
        **more,
    )
    for name, content in ((CARD, model_card(facts)), (REPORT, report_page(facts))):
        with atomic_text_file(folder / name) as file:
            file.write(content)


def mark_final(work: Path) -> None:
    """Note in the folder of a selection that its final training begins."""
    (work / FINAL_MARK).touch()


def final_begun(work: Path) -> bool:
    """Whether a selection that was stopped had begun its final training, so that its output folder has files."""
    return (work / FINAL_MARK).exists()
