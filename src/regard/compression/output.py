"""The chosen model folder with its history: table, picture and model card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.checkpoint.files import atomic_folder, write_json
from regard.compression.result import CandidateResult, Compression

RESULTS, PARETO, CARD = "compression.json", "pareto.png", "README.md"
BEST, OTHER, DARK = "#3b6ea8", "#8a8a8a", "#333333"


def write_chosen(target: Path, source: Path, result: Compression, *, overwrite: bool) -> None:
    """Write the chosen model, completely or not at all."""
    with atomic_folder(target, overwrite=overwrite) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
        write_json(temporary / RESULTS, json.loads(json.dumps(result.json())))
        draw_pareto(result, temporary / PARETO)
        card = temporary / CARD
        before = card.read_text(encoding="utf-8").rstrip() if card.is_file() else f"# {target.name}"
        card.write_text(f"{before}\n\n{history(result)}\n", encoding="utf-8")


def history(result: Compression) -> str:
    """The section of the model card about the compression."""
    chosen = result.chosen_candidate
    assert chosen is not None
    teacher = result.teacher
    about = f"{chosen.name} ({chosen.method}) of a teacher with {teacher.parameters:,} parameters"
    goal = f"it had to keep {result.floor:.1%} of the {result.metric}. Measured on {result.rows:,} test rows:"
    header = [
        f"| model | {result.metric} | difference | 1 / 24 / 128 words (ms) | texts/s | MB |",
        "|---|---|---|---|---|---|",
    ]
    measured = [one for one in (teacher, *result.candidates) if one.error is None]
    rows = [f"| {' | '.join(table_cells(one, result.metric))} |" for one in measured]
    return "\n".join(["## Compression", "", f"{about}; {goal}", "", *header, *rows])


def table_cells(candidate: CandidateResult, metric: str) -> list[str]:
    """Name, score, difference to the teacher, latencies, speed and size, as text."""
    score = candidate.scores[metric]
    difference = "" if candidate.difference is None else _signed(candidate.difference)
    times = " / ".join(f"{value:.1f}" for value in candidate.latency_ms.values())
    name = f"**{candidate.name}**" if candidate.is_chosen else candidate.name
    return [
        name,
        f"{score.value:.4f} ({score.low:.4f} to {score.high:.4f})",
        difference,
        times,
        f"{candidate.texts_per_second:,.0f}",
        f"{candidate.bytes / 1e6:.1f}",
    ]


def _signed(difference: Any) -> str:
    return f"{difference.value:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"


def pareto_front(candidates: Sequence[CandidateResult], metric: str) -> list[CandidateResult]:
    """Candidates for which no other one is both at least as fast and at least as good."""

    def is_beaten(one: CandidateResult) -> bool:
        own = (one.cost, one.scores[metric].value)
        return any(
            other.cost <= own[0]
            and other.scores[metric].value >= own[1]
            and (other.cost, other.scores[metric].value) != own
            for other in candidates
        )

    return [one for one in candidates if not is_beaten(one)]


def draw_pareto(result: Compression, path: Path) -> None:
    """Score against the latency of a text of 24 words; the line is the floor."""
    from matplotlib.figure import Figure

    measured = [one for one in (result.teacher, *result.candidates) if one.error is None]
    front = pareto_front(measured, result.metric)
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axis = figure.add_subplot()
    for one in measured:
        score = one.scores[result.metric]
        errors = [[score.value - score.low], [score.high - score.value]]
        color = BEST if one in front else OTHER
        axis.errorbar(one.cost, score.value, yerr=errors, fmt="s" if one.is_chosen else "o", color=color, capsize=3)
        axis.annotate(
            one.name, (one.cost, score.value), textcoords="offset points", xytext=(8, 5), color=DARK, fontsize=9
        )
    floor = result.floor * result.teacher.scores[result.metric].value
    axis.axhline(floor, color=DARK, linewidth=0.8, linestyle="--")
    axis.set_xscale("log")
    axis.set(xlabel="time of a text of 24 words in ms", ylabel=result.metric.replace("_", " "))
    title = f"{result.task}, {result.rows:,} test rows, 95 % intervals; dashed: the floor; square: chosen"
    axis.set_title(title, loc="left", fontsize=10)
    axis.margins(x=0.25, y=0.15)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
    figure.savefig(path, dpi=150, format="png")
