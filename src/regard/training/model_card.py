"""The model card: README.md with the front matter that the hub reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.family import Family
from regard.checkpoint.folder import Checkpoint

PIPELINES = {
    "classify": "text-classification",
    "pair": "text-classification",
    "tag": "token-classification",
    "answer": "question-answering",
    "masked": "fill-mask",
    "causal": "text-generation",
    "two-sided": "feature-extraction",
    "embed": "sentence-similarity",
    "translate": "translation",
}
CALLS = {
    "pair": 'predict([("a text", "another")])',
    "answer": 'predict([("a question", "a context")])',
    "masked": 'fill("a [MASK] text")',
    "causal": 'generate("a text")',
    "two-sided": 'embed(["a text"])',
    "embed": 'embed(["a text"])',
    "translate": 'translate(["a text"])',
}  # where it is not predict(["a text"])


def model_card(checkpoint: Checkpoint, run: Mapping[str, Any]) -> str:
    """What the model is, what it was trained on, how good it is, how to use it."""
    task, data, settings, done = run["task"], run["data"], run["settings"], run["done"]
    begun = f"going on from `{run['start']}`"
    if not run["pretrained"]:
        begun = f"from scratch (randomly initialized), in the shape `{run['start']}`,"
    parameters = sum(parameter.numel() for parameter in checkpoint.network.parameters())
    family = family_for(checkpoint.family, checkpoint.config)
    shared = family.in_transformers
    front = [
        "---",
        f"library_name: {'transformers' if shared else 'regard'}",
        f"pipeline_tag: {PIPELINES.get(task, 'feature-extraction')}",
    ]
    front += ["tags:", "- regard", f"- {task}", "---", ""]
    lines = [
        f"# A {checkpoint.family} model for {task}",
        "",
        f"{parameters:,} parameters, trained {begun} on {data['train_rows']:,} rows.",
        "",
        *_new_heads(run),
        *_scores(run),
        *_labels(checkpoint),
        "## How it was trained",
        "",
        f"{done['steps']:,} steps, {done['tokens']:,} tokens, {done['seconds']:.0f} s; rate {settings['lr']:.2g},",
        f"{settings['batch_tokens']:,} tokens a step, seed {settings['seed']}. Every setting is in `run.json`,",
        "the course in `metrics.jsonl` and `curves.png`.",
        "",
        "![curves](curves.png)",
        "",
        "## How to use it",
        "",
        "```python",
        "import regard",
        "",
        'model = regard.load("this-folder")',
        "model." + CALLS.get(task, 'predict(["a text"])'),
        "```",
        "",
        _opens(family),
        "",
    ]
    return "\n".join(front + lines)


def _opens(family: Family) -> str:
    """Whether another library opens the folder too."""
    if family.in_transformers:
        return "The folder also opens with `from_pretrained` of transformers."
    if family.own_names:
        return f"transformers cannot open this folder: its {family.name} models do not have these settings."
    return "transformers cannot open this folder: it has no recurrent networks."


def _new_heads(run: Mapping[str, Any]) -> list[str]:
    """Which parts did not come from the model it started from."""
    names = run.get("new_heads")
    if not names:
        return []
    return [f"New in this training, and randomly initialized at its start: {', '.join(names)}.", ""]


def _scores(run: Mapping[str, Any]) -> list[str]:
    if not run["scores"]:
        return ["It was not scored: there was no dev data.", ""]
    source = "split off from the training data" if run["data"]["dev_split_off"] else "given"
    lines = [f"## Scores on {run['data']['dev_rows']:,} dev rows ({source})", "", "| score | value | 95 % interval |"]
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
