"""The facts about a training."""

from __future__ import annotations

from regard.checkpoint.families import FAMILIES
from regard.metrics.label_meters import LabelMeter
from regard.report.facts import RunFacts

RUN = {
    "task": "classify",
    "task_settings": {"kind": "single", "labels": ["a", "b"], "temperature": 2.0},
    "start": "minilm",
    "pretrained": True,
}


def test_titles_tasks_and_baselines() -> None:
    meter = LabelMeter(["a", "b"])
    for label in ("a", "a", "b"):
        meter.add("a", label)
    facts = RunFacts(RUN, FAMILIES["bert"], 10, report=meter.report())
    assert facts.title == "BERT text classifier, fine-tuned from minilm"
    assert facts.tuned_task.settings()["temperature"] == 2.0
    assert facts.opens_in_transformers
    assert facts.baseline == ("a", 2 / 3)
    assert RunFacts(RUN, FAMILIES["bert"], 10).baseline is None
    scratch = RunFacts({**RUN, "pretrained": False}, FAMILIES["bert"], 10)
    assert scratch.title == "BERT text classifier, trained from scratch (minilm)"
