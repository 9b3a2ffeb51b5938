"""report.html: a training as one page that needs no other file and no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from regard.data.check.page import format_duration
from regard.data.check.plots import escaped
from regard.errors import pluralize
from regard.metrics.confidence import Score
from regard.report.class_tables import class_card, confusion_card
from regard.report.elements import (
    card,
    code,
    example,
    folded,
    grid,
    html_page,
    key_values,
    legend,
    score_table,
    table,
    tile,
)
from regard.report.facts import RunFacts, initial_seconds, scored_rows
from regard.report.plots import Line, coverage_plot, line_plot, reliability, scatter

OPEN_EXAMPLES = 6  # shown at once; the rest after a click
ERRORS = ("mse", "mae")  # scores in the units of the numbers, which share no scale with correlations


def report_page(facts: RunFacts) -> str:
    """The page of a training."""
    sections = [
        _head(facts),
        _tiles(facts),
        _scores(facts),
        grid(_curves(facts)),
        grid([confusion_card(facts.report), class_card(facts.report)]),
        grid([_numbers(facts), _reliability(facts), _coverage(facts)]),
        _slices(facts),
        _mistakes(facts),
        _issues(facts),
        _search(facts),
        grid([_use(facts), _data(facts)]),
        _settings(facts),
    ]
    return html_page(f"{facts.name}: {facts.title}", "\n".join(part for part in sections if part))


def _head(facts: RunFacts) -> str:
    sections = {
        "scores": "Scores",
        "confusion": "Confusion matrix" if facts.report.confusion is not None else "",
        "calibration": "Calibration" if facts.calibration is not None else "",
        "slices": "Parts of the rows" if facts.rows.slices else "",
        "mistakes": "Mistakes" if facts.rows.mistakes else "",
        "issues": "Label errors" if facts.rows.issues else "",
        "search": "Search" if "search" in facts.run else "",
        "use": "How to use it",
        "settings": "Settings",
    }
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title in sections.items() if title)
    name = escaped(facts.name)
    return f"<h1>{name}</h1>\n<p class='faint'>{escaped(facts.title)}</p>\n<nav>{links}</nav>"


def _tiles(facts: RunFacts) -> str:
    run = facts.run
    tiles = []
    main = run["scores"].get(run["main"]) if run["scores"] else None
    if main is not None:
        interval = f"{run['main']}, 95 % interval {main['low']:.3f} to {main['high']:.3f}"
        tiles.append(tile(f"{main['value']:.3f}", interval.replace("_", " "), main=True))
    again = ""
    if refit := run.get("refit"):
        again = f"; then {'the head' if refit.get('head_only') else 'again'} on all {refit['rows']:,}"
    tiles.append(tile(f"{run['data']['train_rows']:,}", f"training rows{again}"))
    if run["scores"]:
        tiles.append(tile(f"{run['data']['dev_rows']:,}", "rows scored" if _scored_later(run) else "validation rows"))
    if facts.calibration is not None:
        tiles.append(tile(f"{facts.calibration.error:.3f}", "calibration error"))
    tiles.append(tile(_count(facts.parameters), "parameters"))
    done = run.get("mean_of", run["done"])
    name = f"training, {pluralize(done['steps'], 'step')}" if done["steps"] else "training"
    trainings = done.get("trainings", done.get("repeats", 1))
    if trainings > 1:
        name = f"{trainings} trainings of {pluralize(done['steps'], 'step')}"
    seconds = done["seconds"]
    if not done["steps"] and "contrastive" in run:
        seconds = initial_seconds(run)
        name = f"training, {run['contrastive']['steps']} contrastive steps"
    tiles.append(tile(format_duration(seconds), name))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _scored_later(run: Mapping[str, Any]) -> bool:
    """Whether the scores are of a cross-validation or of the test rows of a search."""
    return "cross_validation" in run or "search" in run


def _count(value: int) -> str:
    for unit, size in (("B", 10**9), ("M", 10**6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,}"


def _scores(facts: RunFacts) -> str:
    run = facts.run
    if not run["scores"]:
        return card("Scores", "<p>There were no validation rows, so there are no scores.</p>", name="scores")
    rows = [((name.replace("_", " "),), Score(**score)) for name, score in run["scores"].items()]
    errors = [number for number, name in enumerate(run["scores"]) if name in ERRORS]
    content = score_table(["score"], rows, without_bar=errors)
    content += "".join(
        f'<p class="faint small">{escaped(name)}: <code>{escaped(text)}</code></p>'
        for name, text in run.get("signatures", {}).items()
    )
    if note := facts.tuned_task.score_note:
        content += f'<p class="faint small">{escaped(note)}</p>'
    baseline = facts.baseline
    if baseline is not None:
        name, share = baseline
        content += f'<p class="faint small">Always "{escaped(name)}" would be right for {share:.1%} of the rows.</p>'
    refit = run.get("refit")
    if refit:
        second = "The one in the folder was then trained"
        if refit.get("head_only"):
            second = "The head of the one in the folder was then fitted"
        content += (
            '<p class="faint small">These are the scores of a network that was trained without the validation rows. '
            f"{second} on all {refit['rows']:,} rows.</p>"
        )
    return card("Scores", content, note=f"On {scored_rows(run)}.", name="scores")


def _curves(facts: RunFacts) -> list[str]:
    """Loss, and the main score, over steps."""
    logs = [event for event in facts.events if event["kind"] == "log"]
    scored = [event for event in facts.events if event["kind"] == "score"]
    if not logs:  # fitted at once, without steps
        return []
    losses = [Line("training", [(event["step"], event["loss"]) for event in logs])]
    losses.append(Line("validation", [(event["step"], event["dev_loss"]) for event in scored], color=1, dots=True))
    losses = [line for line in losses if line.points]
    plot = line_plot(losses, x_name="step", label="Loss over steps")
    cards = [card("Loss", plot + legend(losses) if plot else "", name="curves")]
    if len(scored) > 1:
        main = scored[-1]["main"]
        name = main.replace("_", " ")
        line = Line("validation", [(one["step"], one["scores"][main]) for one in scored], 2, dots=True)
        best = next((one for one in reversed(scored) if one["best"]), scored[-1])
        mark = (best["step"], f"written: {best['scores'][main]:.4f}")
        curve = line_plot([line], x_name="step", label=f"{name} over steps", mark=mark)
        cards.append(card(f"{name[:1].upper()}{name[1:]} during training", curve + legend([line])))
    return cards


def _numbers(facts: RunFacts) -> str:
    if not facts.rows.numbers:
        return ""
    plot = scatter(facts.rows.numbers, label="Predicted over true numbers")
    return card("Predicted over true numbers", plot, note="On the line, both are equal.", name="numbers")


def _reliability(facts: RunFacts) -> str:
    calibration, before = facts.calibration, facts.uncalibrated
    if calibration is None:
        return ""
    task = facts.tuned_task
    temperature = task.logit_temperature
    scaled = temperature != 1 and before is not None
    lines = [Line(f"calibration error {calibration.error:.3f}", (), color=0)]
    if scaled and before is not None:
        lines.append(Line(f"before temperature scaling {before.error:.3f}", (), color=1))
    plot = reliability(calibration, before if scaled else None, label="Reliability diagram")
    note = "How often predictions are right, by their probability. On the line they are right as often as they say."
    content = plot + legend(lines)
    if scaled:
        content += f'<p class="faint small">Logits are divided by {temperature:.3g}, fitted on the validation rows.</p>'
    return card("Calibration", content, note=note, name="calibration")


def _coverage(facts: RunFacts) -> str:
    points = facts.rows.coverage
    if not points:
        return ""
    rows = [
        [
            f"{point.below:g}" if point.below else "always",
            f"{point.coverage:.1%}",
            "–" if point.accuracy is None else f"{point.accuracy:.1%}",
        ]
        for point in points
    ]
    plot = coverage_plot(points, label="Accuracy over coverage")
    content = plot + table(["answers from confidence", "answered", "right"], rows, numbers=(1, 2))
    note = "What is left if the model does not answer below a confidence (--abstain)."
    return card("Abstaining", content, note=note, name="coverage")


def _slices(facts: RunFacts) -> str:
    rows = [((one.kind, one.name, f"{one.rows:,}"), one.score) for one in facts.rows.slices]
    main = str(facts.run["main"]).replace("_", " ")
    return card(
        f"{main[:1].upper()}{main[1:]} by part of the rows", score_table(["by", "part", "rows"], rows), name="slices"
    )


def _mistakes(facts: RunFacts) -> str:
    rows = facts.rows
    content = _examples(rows.mistakes)
    how = "the most confident first" if facts.rows.coverage else "the largest errors first"
    note = f"{pluralize(rows.mistake_count, 'wrong answer')} on the validation rows; {how}."
    return card("Mistakes", content, note=note, name="mistakes")


def _issues(facts: RunFacts) -> str:
    rows = facts.rows
    note = (
        f"The label of {pluralize(rows.issue_count, 'validation row')} may be wrong: the model contradicts it with "
        "confidence (confident learning). The most likely errors come first; check them before you change anything."
    )
    return card("Likely label errors", _examples(rows.issues), note=note, name="issues")


def _search(facts: RunFacts) -> str:
    """The trials of a search for settings."""
    search = facts.run.get("search")
    if search is None:
        return ""
    rows = [
        [
            f"{trial['number'] + 1}",
            "too slow" if trial["score"] is None else f"{trial['score']:.4f}",
            format_duration(trial["seconds"]),
            escaped(_in_words(trial["settings"])),
        ]
        for trial in search["trials"]
    ]
    notes = "".join(f"<p><b>{escaped(note[:1].upper() + note[1:])}.</b></p>" for note in search.get("notes", ()))
    content = notes + table(["trial", search["metric"].replace("_", " "), "time", "settings"], rows, numbers=(1, 2))
    note = f"Scores on validation rows. Trained on all rows but the test rows: {_in_words(search['settings'])}."
    return card("Search for settings", content, note=note, name="search")


def _in_words(settings: Mapping[str, Any]) -> str:
    values = {name: f"{value:.3g}" if name == "lr" else value for name, value in settings.items()}
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "default settings"


def _examples(examples: Any) -> str:
    shown = "".join(map(example, examples[:OPEN_EXAMPLES]))
    rest = examples[OPEN_EXAMPLES:]
    return shown + folded(f"{len(rest)} more", "".join(map(example, rest))) if examples else ""


def _use(facts: RunFacts) -> str:
    task, name = facts.task, facts.name
    content = "<p>On the command line:</p>" + code(f"regard {task.command} {name} {task.command_example}")
    content += "<p>In Python:</p>" + code(f'import regard\n\nmodel = regard.load("{name}")\nmodel.{task.example_call}')
    if facts.opens_in_transformers:
        content += (
            '<p class="faint small">The folder also opens with <code>from_pretrained</code> of transformers, '
            "which gives the logits before temperature scaling.</p>"
        )
    return card("How to use it", content, name="use")


def _second_training(refit: Mapping[str, Any]) -> str:
    """Where the weights come from, with the fields of run.json."""
    if refit.get("head_only"):
        return f"the head was fitted again on all {refit['rows']:,} rows"
    return f"of a second training on all {refit['rows']:,} rows"


def _data(facts: RunFacts) -> str:
    run, data = facts.run, facts.run["data"]
    values = {
        "data": data["recognized"],
        "training rows": f"{data['train_rows']:,}",
        **({"weights": _second_training(run["refit"])} if "refit" in run else {}),
        "validation rows": f"{data['dev_rows']:,}",
        "hash of the data": data["hash"],
        "started from": run["start"],
        **({"contrastive steps": str(run["contrastive"]["steps"])} if "contrastive" in run else {}),
        **({"similarity learned from": f"{run['similarity']['pairs']:,} pairs"} if "similarity" in run else {}),
        "hash of the tokenizer": ", ".join(run.get("tokenizer") or ()),
        "trained on": run["device"],
        "tokens": f"{run['done']['tokens']:,}",
        "tokens per second": _rounded(run["done"].get("tokens_per_second")),
        **{f"{name} version": value for name, value in {"regard": run["regard"], **run["versions"]}.items()},
    }
    return card("Data and environment", key_values(values), name="data")


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _settings(facts: RunFacts) -> str:
    chosen = {name: f"{_shown(value)} (chosen)" for name, value in facts.run.get("chosen", {}).items()}
    content = key_values(_flat(facts.run["settings"]) | chosen)
    task = key_values({name: _shown(value) for name, value in facts.run["task_settings"].items()})
    both = folded("Every setting of the training", content) + folded("Settings of the task", task)
    return card("Settings", both, note="As they were used; run.json has the same.", name="settings")


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings by dotted names."""
    values: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            values |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            values[f"{prefix}{name}"] = _shown(value)
    return values


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:299]}…"
