"""The course of a training as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw_curves(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Loss and dev score over steps; nothing where there is nothing to draw."""
    logs = [line for line in lines if line["kind"] == "log"]
    scores = [line for line in lines if line["kind"] == "score"]
    if not logs:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2 if scores else 1, squeeze=False, sharex=True)[0]
    axes[0].plot([line["step"] for line in logs], [line["loss"] for line in logs], label="train", color="#3b6ea8")
    if scores:
        steps = [line["step"] for line in scores]
        axes[0].plot(steps, [line["dev_loss"] for line in scores], "o-", label="dev", color="#c44e3b")
        main = scores[-1]["main"]
        values = [line["scores"][main] for line in scores]
        axes[1].plot(steps, values, "o-", color="#c44e3b")
        best = next(line for line in reversed(scores) if line["best"])
        axes[1].axvline(best["step"], color="#999999", linestyle=":", linewidth=1)
        right = best["step"] > steps[-1] / 2
        axes[1].annotate(
            f"best {best['scores'][main]:.4f}",
            (best["step"], best["scores"][main]),
            textcoords="offset points",
            xytext=(-6 if right else 6, 8),
            ha="right" if right else "left",
        )
        axes[1].set(title=f"dev {main}", xlabel="step")
        axes[1].margins(y=0.2)
        axes[0].legend(frameon=False)
    axes[0].set(title="loss", xlabel="step")
    axes[0].set_xlim(left=0)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.savefig(path, dpi=120)
