"""Training curves as a picture."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MARGINS = {"left": 0.085, "right": 0.98, "bottom": 0.14, "top": 0.9, "wspace": 0.2}  # parts of the figure
TRAIN, DEV, PALE = "#3b6ea8", ("#c44e3b", "#4d8a57", "#8a5d9e"), "#999999"
NARROW = {"columnspacing": 1.2, "handlelength": 1.4}


def import_in_background() -> None:
    """Import matplotlib in a thread: it takes half a second, and while a GPU works the interpreter is mostly idle."""

    def load() -> None:
        with contextlib.suppress(ImportError):
            for name in ("matplotlib.figure", "matplotlib.backends.backend_agg"):
                importlib.import_module(name)

    threading.Thread(target=load, name="regard-import", daemon=True).start()


def draw_curves(lines: Sequence[Mapping[str, Any]], path: Path, *, baseline: Mapping[str, float] | None = None) -> None:
    """Plot loss and validation scores over steps; nothing without logged steps.

    Scores of the same kind as the main one are plotted with it, such as two accuracies, each with a dashed line at its
    `baseline`, such as that of a unigram model.
    """
    logs = [line for line in lines if line["kind"] == "log"]
    scores = [line for line in lines if line["kind"] == "score"]
    if not logs:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6))
    figure.subplots_adjust(**MARGINS)  # a layout that is computed takes as long as the drawing
    axes = figure.subplots(1, 2 if scores else 1, squeeze=False, sharex=True)[0]
    axes[0].plot([line["step"] for line in logs], [line["loss"] for line in logs], label="train", color=TRAIN)
    if scores:
        steps = [line["step"] for line in scores]
        axes[0].plot(steps, [line["dev_loss"] for line in scores], "o-", label="dev", color=DEV[0])
        axes[0].legend(frameon=False)
        _draw_scores(axes[1], scores, baseline or {})
    axes[0].set(title="loss", xlabel="step")
    axes[0].set_xlim(left=0)
    axes[0].locator_params(axis="x", nbins=6)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.savefig(path, dpi=120)


def _draw_scores(axis: Any, scores: Sequence[Mapping[str, Any]], baseline: Mapping[str, float]) -> None:
    steps, main = [line["step"] for line in scores], scores[-1]["main"]
    more = [name for name in scores[-1]["scores"] if name != main and _kind(name) and _kind(name) == _kind(main)]
    shown = [main, *more][: len(DEV)]
    for name, line_color in zip(shown, DEV, strict=False):
        known = [line for line in scores if name in line["scores"]]
        values = [line["scores"][name] for line in known]
        axis.plot([line["step"] for line in known], values, "o-", color=line_color, label=_words(name))
        if name in baseline:
            axis.axhline(baseline[name], color=line_color, linestyle="--", linewidth=1)
            axis.annotate(
                f"unigram baseline {baseline[name]:.3f}", (0, baseline[name]), **_beside(4, 3), color=line_color
            )
    best = next((line for line in reversed(scores) if line["best"]), scores[-1])
    axis.axvline(best["step"], color=PALE, linestyle=":", linewidth=1)
    right = best["step"] > steps[-1] / 2
    where = _beside(-6 if right else 6, 8, align="right" if right else "left")
    axis.annotate(f"written: {best['scores'][main]:.4f}", (best["step"], best["scores"][main]), **where)
    axis.set(xlabel="step")
    axis.margins(y=0.2)
    if len(shown) == 1:
        axis.set_title(f"dev {_words(main)}")
    else:
        axis.set_title("dev", loc="left")
        axis.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.98), ncols=len(shown), **NARROW)


def _kind(name: str) -> str:
    """What a score counts: the last word of a name that has several."""
    return name.rpartition("_")[2] if "_" in name else ""


def _words(name: str) -> str:
    return name.replace("_", " ")


def _beside(right: int, up: int, *, align: str = "left") -> dict[str, Any]:
    return {"textcoords": "offset points", "xytext": (right, up), "ha": align}
