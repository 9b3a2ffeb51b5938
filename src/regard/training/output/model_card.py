"""The model card: README.md with the front matter that the hub reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.family import Family
from regard.checkpoint.folder import Checkpoint
from regard.tasks import task_class
from regard.tasks.task import Task


def model_card(checkpoint: Checkpoint, run: Mapping[str, Any]) -> str:
    """README.md: what the model is, what it was trained on, its scores, and how to use it."""
    task = task_class(run["task"])
    family = family_for(checkpoint.family, checkpoint.config)
    parameters = sum(parameter.numel() for parameter in checkpoint.network.parameters())
    lines = [
        *_front_matter(task, family),
        f"# {_title(family, task, run)}",
        "",
        f"{parameters:,} parameters, {_origin(run)} on {run['data']['train_rows']:,} rows.",
        "",
        *_new_heads(run),
        *_scores(run),
        *_labels(checkpoint),
        *_training(run),
        "## How to use it",
        "",
        "```python",
        "import regard",
        "",
        'model = regard.load("this-folder")',
        f"model.{task.example_call}",
        "```",
        "",
        _opens(task, family),
        "",
    ]
    return "\n".join(lines)


def _title(family: Family, task: type[Task], run: Mapping[str, Any]) -> str:
    if run.get("preset") is not None:
        return f"{family.title or family.name} {task.title}, the baseline {run['start']}"
    return model_title(family, task, run["start"], pretrained=run["pretrained"])


def model_title(family: Family, task: type[Task], start: str, *, pretrained: bool) -> str:
    """What a model is, such as "BERT text classifier, fine-tuned from minilm"."""
    name = family.title or family.name
    if not pretrained:
        return f"{name} {task.title}, trained from scratch ({start})"
    how = "further pretrained" if task.language_model else "fine-tuned"
    return f"{name} {task.title}, {how} from {start}"


def _front_matter(task: type[Task], family: Family) -> list[str]:
    """The metadata that the Hugging Face hub reads."""
    library = "transformers" if family.in_transformers and task.in_transformers else "regard"
    return [
        "---",
        f"library_name: {library}",
        f"pipeline_tag: {task.pipeline_tag}",
        "tags:",
        "- regard",
        f"- {task.name}",
        "---",
        "",
    ]


def _origin(run: Mapping[str, Any]) -> str:
    if run.get("preset") is not None:
        return f"the baseline `{run['start']}`, {'trained' if run['done']['steps'] else 'fitted'}"
    if run["pretrained"]:
        return f"trained from the weights of `{run['start']}`"
    return f"trained from scratch (randomly initialized) with the preset `{run['start']}`"


def _training(run: Mapping[str, Any]) -> list[str]:
    settings, done = run["settings"], run["done"]
    notes = task_class(run["task"]).from_settings(run["task_settings"]).notes
    if not done["steps"]:
        return [
            "## How it was trained",
            "",
            f"A linear model was fitted at once, without training steps; seed {settings['seed']}.",
            "All settings are in `run.json`.",
            "",
        ]
    size = f"{done['steps']:,} steps, {done['tokens']:,} tokens, {done['seconds']:.0f} s"
    return [
        "## How it was trained",
        "",
        f"{size}; learning rate {settings['lr']:.2g},",
        f"{settings['batch_tokens']:,} tokens per step, seed {settings['seed']}. All settings are in `run.json`;",
        "loss and scores over time are in `metrics.jsonl` and `curves.png`.",
        *(f"{note[0].upper()}{note[1:]}." for note in notes),
        "",
        "![curves](curves.png)",
        "",
    ]


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
    if not names:
        return []
    return [f"New in this training, and randomly initialized at its start: {', '.join(names)}.", ""]


def _scores(run: Mapping[str, Any]) -> list[str]:
    if not run["scores"]:
        return ["It was not scored: there were no validation rows.", ""]
    source = "split off from the training data" if run["data"]["dev_split_off"] else "separate data"
    lines = [
        f"## Scores on {run['data']['dev_rows']:,} validation rows ({source})",
        "",
        "| score | value | 95 % interval |",
    ]
    lines.append("|---|---|---|")
    for name, score in run["scores"].items():
        lines.append(f"| {name} | {score['value']:.4f} | {score['low']:.4f} to {score['high']:.4f} |")
    for name, signature in run.get("signatures", {}).items():
        lines.append(f"\n{name}: `{signature}`")
    return [*lines, ""]


def _labels(checkpoint: Checkpoint) -> list[str]:
    if not checkpoint.labels:
        return []
    shown = ", ".join(f"`{label}`" for label in checkpoint.labels[:50])
    return [f"Labels: {shown}{' …' if len(checkpoint.labels) > 50 else ''}", ""]
