"""The training loop: which weights are the best."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.training.helpers import Reviews, Write, train
from tests.training.inputs import run_context, training_inputs

from regard.metrics.confidence import Score
from regard.training.engine.loop import fit
from regard.training.output.metrics_log import TrainingEvent
from regard.training.pipeline import plan_training


def test_of_equal_scores_the_lower_loss_is_the_best(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [(text, "good" if number % 8 else "bad") for number, (text, _) in enumerate(reviews(48))]
    events: list[TrainingEvent] = []
    result = train(
        write_rows(tmp_path / "uneven.csv", rows), tmp_path / "run", epochs=3, lr=1e-4, progress=events.append
    )
    scores = [event for event in events if event.kind == "score"]
    assert len({event.values["scores"]["accuracy"] for event in scores}) == 1  # all rows get the common label
    losses = [event.values["dev_loss"] for event in scores]
    assert losses == sorted(losses, reverse=True)
    assert [event.values["best"] for event in scores] == [True, True, True]
    assert json.loads((tmp_path / "run/run.json").read_text())["done"]["best_step"] == result.steps


@pytest.mark.parametrize(
    ("higher", "values", "best_step"),
    [(True, (0.8, 0.7), 2), (True, (0.8, 0.5), 1), (False, (1.4, 1.5), 2), (False, (1.4, 1.7), 1)],
)
def test_the_last_weights_are_kept_unless_significantly_worse(
    tmp_path: Path, higher: bool, values: tuple[float, ...], best_step: int
) -> None:
    """An interval of plus or minus 0.15 around the last score holds the score before, or does not."""
    remaining = list(values)

    def score() -> Any:
        value = remaining.pop(0)
        scores = {"main": Score(value, value - 0.15, value + 0.15)}
        return SimpleNamespace(scores=scores, main="main", value=value, loss=1.0, higher=higher)

    job = plan_training(run_context(tmp_path / "run"), training_inputs(eval_every=1, steps=2))
    fitted = fit(replace(job, score=score, score_initial=False, prefer_last=True))
    assert (fitted.best, fitted.best_step) == (values[best_step - 1], best_step)
