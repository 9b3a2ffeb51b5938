"""The model card: README.md with the front matter that the hub reads."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint.family import Family
from regard.checkpoint.published import PUBLISHED
from regard.report.facts import RunFacts, initial_seconds, scored_rows
from regard.tasks.classify import Classify
from regard.tasks.task import Task

HUB_NAMES = {**PUBLISHED, "minilm": "sentence-transformers/all-MiniLM-L6-v2"}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def model_card(facts: RunFacts) -> str:
    """README.md: what the model is, what it was trained on, its scores, and how to use it."""
    run, task = facts.run, facts.task
    lines = [
        *_front_matter(task, facts.family),
        *_index(facts),
        "---",
        "",
        f"# {facts.title}",
        "",
        f"{facts.parameters:,} parameters, {_origin(run)} on {_rows(run):,} rows.",
        "",
        *_new_heads(run),
        *_scores(facts),
        *_calibration(facts),
        *_labels(facts.labels),
        *_training(facts),
        "## How to use it",
        "",
        "```python",
        "import regard",
        "",
        'model = regard.load("this-folder")',
        f"model.{task.example_call}",
        "```",
        "",
        _opens(task, facts.family),
        *_in_transformers(facts),
        "",
    ]
    return "\n".join(lines)


def _front_matter(task: type[Task], family: Family) -> list[str]:
    """The metadata that the Hugging Face hub reads; what a run adds to it comes after."""
    library = "transformers" if family.in_transformers and task.in_transformers else "regard"
    return [
        "---",
        f"library_name: {library}",
        f"pipeline_tag: {task.pipeline_tag}",
        "tags:",
        "- regard",
        f"- {task.name}",
    ]


def _index(facts: RunFacts) -> list[str]:
    """The model it started from, and its scores as the hub lists them."""
    run = facts.run
    lines = []
    start = HUB_NAMES.get(str(run["start"]), str(run["start"])) if run["pretrained"] else ""
    if HUB_ID.fullmatch(start) and not Path(start).exists():  # a folder of this name is what was started from
        lines.append(f"base_model: {start}")
    if not run["scores"]:
        return lines
    lines += [
        "model-index:",
        f"- name: {json.dumps(facts.name, ensure_ascii=False)}",
        "  results:",
        "  - task:",
        f"      type: {facts.task.pipeline_tag}",
        "    dataset:",
        f"      name: {'test rows' if 'search' in run else 'validation rows'}",
        f"      type: {facts.task.record.type_name}",
        "    metrics:",
    ]
    for name, score in run["scores"].items():
        if math.isfinite(score["value"]):
            lines += [f"    - type: {json.dumps(name, ensure_ascii=False)}", f"      value: {score['value']:.4f}"]
    return lines


def _origin(run: Mapping[str, Any]) -> str:
    if run.get("preset") is not None:
        return f"the baseline `{run['start']}`, {'trained' if run['done']['steps'] else 'fitted'}"
    if run["pretrained"]:
        return f"trained from the weights of `{run['start']}`"
    return f"trained from scratch (randomly initialized) with the preset `{run['start']}`"


def _calibration(facts: RunFacts) -> list[str]:
    """What its probabilities mean."""
    task, calibration = facts.tuned_task, facts.calibration
    if calibration is None or (task.logit_temperature == 1 and not isinstance(task, Classify)):
        return []
    error = f"the expected calibration error on the validation rows is {calibration.error:.3f}"
    lines = [f"Probabilities are those of the logits divided by {task.logit_temperature:.4g}; {error}."]
    if isinstance(task, Classify) and task.thresholds is not None:
        limits = ", ".join(f"`{name}` {value:.3f}" for name, value in zip(task.names, task.thresholds, strict=True))
        lines.append(f"A label is predicted above its threshold: {limits}.")
    return [*lines, ""]


def _in_transformers(facts: RunFacts) -> list[str]:
    """How to get the same probabilities there."""
    task = facts.tuned_task
    if not facts.opens_in_transformers or task.logit_temperature == 1:
        return []
    divide = f"divide them by {task.logit_temperature:.6g} for the same probabilities"
    lines = [f"It gives the logits themselves: {divide}."]
    if isinstance(task, Classify) and task.thresholds is not None:
        lines.append("The thresholds of the labels are in `run.json`, under `task_settings`.")
    return lines


def _training(facts: RunFacts) -> list[str]:
    run = facts.run
    settings, done = run["settings"], run["done"]
    notes = facts.tuned_task.notes
    label_errors = " and likely label errors" if facts.tuned_task.has_labels() else ""
    if not done["steps"]:
        how = f"A linear model was fitted at once, without training steps; seed {settings['seed']}."
        if first := run.get("contrastive"):
            how = (
                f"{first['steps']} steps{_repeated(first)} with up to {first['texts']} texts and a learning rate of "
                f"{first['lr']:.2g} made the vectors of texts with the same label similar (contrastive training); then "
                "a linear model of these vectors was fitted as the head. It took "
                f"{initial_seconds(run):.0f} s; seed {settings['seed']}."
            )
        if mean := run.get("mean_of"):
            trainings = "One training" if mean["trainings"] == 1 else f"The mean of {mean['trainings']} trainings"
            how = f"{trainings} of {mean['steps']:,} steps{_similarity(run)}; all steps took {mean['seconds']:.0f} s."
        return [
            "## How it was trained",
            "",
            how,
            f"All settings are in `run.json`; `report.html` has the mistakes{label_errors}.",
            "",
        ]
    size = f"{done['steps']:,} steps, {done['tokens']:,} tokens, {done['seconds']:.0f} s"
    if done.get("repeats", 1) > 1:
        each = f"The mean of {done['repeats']} trainings with other seeds, each of {done['steps']:,} steps"
        size = f"{each}; {done['tokens']:,} tokens and {done['seconds']:.0f} s in all steps"
    return [
        "## How it was trained",
        "",
        f"{size}{_similarity(run)}; learning rate {settings['lr']:.2g},",
        f"{settings['batch_tokens']:,} tokens per step, seed {settings['seed']}. All settings are in `run.json`;",
        "loss and scores over time are in `metrics.jsonl` and `curves.png`. `report.html` has scores of",
        f"parts of the rows, and the mistakes{label_errors}.",
        *(f"{note[0].upper()}{note[1:]}." for note in notes),
        "",
        "![curves](curves.png)",
        "",
    ]


def _repeated(contrastive: Mapping[str, Any]) -> str:
    repeats = contrastive.get("repeats", 1)
    return f" ({repeats} times, whose weights are averaged)" if repeats > 1 else ""


def _similarity(run: Mapping[str, Any]) -> str:
    similarity = run.get("similarity")
    return f", after learning similarity from {similarity['pairs']:,} pairs" if similarity else ""


def _opens(task: type[Task], family: Family) -> str:
    """Whether another library opens the folder too."""
    if family.in_transformers and task.in_transformers:
        return "The folder also opens with `from_pretrained` of transformers."
    if family.own_names:
        return f"transformers cannot open this folder: its {family.name} models do not have these settings."
    if family.name in ("ngram", "static"):
        return "transformers cannot open this folder: it has no such networks."
    if not family.in_transformers:
        return "transformers cannot open this folder: it has no recurrent networks."
    return f"transformers cannot open this folder: it has no class for this task ({task.title})."


def _new_heads(run: Mapping[str, Any]) -> list[str]:
    """The heads that the model it started from did not have."""
    names = run.get("new_heads")
    if not names or (not run["done"]["steps"] and "mean_of" not in run):  # fitted, not random
        return []
    return [f"New in this training, and randomly initialized at its start: {', '.join(names)}.", ""]


def _scores(facts: RunFacts) -> list[str]:
    run = facts.run
    if not run["scores"]:
        return ["It was not scored: there were no validation rows.", ""]
    lines = [
        f"## Scores on {scored_rows(run)}",
        "",
        "| score | value | 95 % interval |",
    ]
    lines.append("|---|---|---|")
    for name, score in run["scores"].items():
        lines.append(f"| {name} | {score['value']:.4f} | {score['low']:.4f} to {score['high']:.4f} |")
    for name, signature in run.get("signatures", {}).items():
        lines.append(f"\n{name}: `{signature}`")
    if note := facts.tuned_task.score_note:
        lines.append(f"\n{note}")
    if "refit" in run:
        first, second = "the same training", "the model here was then trained"
        if run["refit"].get("head_only"):
            first, second = "a training", "the head of the model here was then fitted"
        others = f"the other {run['data']['train_rows']:,} rows"
        lines.append(f"\nThese are the scores of {first} on {others}; {second} on all {_rows(run):,}.")
    return [*lines, ""]


def _rows(run: Mapping[str, Any]) -> int:
    """The number of rows that the weights were trained on."""
    rows: int = run["refit"]["rows"] if "refit" in run else run["data"]["train_rows"]
    return rows


def _labels(labels: tuple[str, ...] | None) -> list[str]:
    if not labels:
        return []
    shown = ", ".join(f"`{label}`" for label in labels[:50])
    return [f"Labels: {shown}{' …' if len(labels) > 50 else ''}", ""]
