"""`regard train --folds`, `regard train --search` and `regard train --time`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.cli.next_steps import next_rows, report_row
from regard.cli.output import UsageError, print_json, print_scores, print_status, print_table
from regard.cli.training_progress import TrainingProgress, same_command_goes_on
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.cli.commands.train import TrainCommand
    from regard.progress import Progress
    from regard.selection.folds import CrossValidation
    from regard.selection.search import SettingsSearch
    from regard.selection.seeds import SeedsResult

READING = ("format", "columns", "encoding", "labels")
UNUSED = ("resume", "tokenizer", "skip_bad")


def run_selection(command: TrainCommand, arguments: Mapping[str, Any]) -> None:
    """Cross-validate, search for settings, or train several seeds; print the result."""
    flags = [f"--{name}" for name in ("folds", "search", "time") if getattr(command, name) is not None]
    if len(flags) > 1:
        raise UsageError(f"{' and '.join(flags)} were given; give one of them.")
    flag = flags[0]
    for name in UNUSED:
        if getattr(command, name):
            raise UsageError(f"--{name.replace('_', '-')} was given with {flag}; leave it out.{RESUMES[name]}")
    if command.folds is not None and command.dev is not None:
        raise UsageError("--dev was given with --folds, which splits the rows itself; leave it out.")
    options = {name: value for name, value in arguments.items() if name not in (*READING, "tokenizer", "dev")}
    options |= {
        "reading": {name: arguments[name] for name in READING},
        "out": command.out,
        "overwrite": command.overwrite,
        "progress": _print_progress,
    }
    with same_command_goes_on(command.out), TrainingProgress() as training:
        if command.folds is not None:
            from regard.selection.folds import cross_validate

            validation = cross_validate(command.data, folds=command.folds, training=training, **options)
            _print_folds(validation, json=command.json)
            return
        if command.time is not None:
            from regard.selection.seeds import train_seeds

            seeds = train_seeds(command.data, time=command.time, dev=command.dev, training=training, **options)
            _print_seeds(seeds, json=command.json)
            return
        from regard.selection.search import search_settings

        options["dev"] = command.dev
        changed = {name: value for name, value in options.items() if not _is_default(name, value)}
        result = search_settings(command.data, time=command.search or "", training=training, **changed)
    _print_search(result, json=command.json)


RESUMES = {
    "resume": " A run that was stopped goes on by itself with the same command.",
    "tokenizer": "",
    "skip_bad": " Correct the data first: regard check DATA --fix FILE.",
}


def _is_default(name: str, value: Any) -> bool:
    """Whether a setting was left at its default, so that the search may choose it."""
    from regard.training.settings import Settings

    return name in Settings.__dataclass_fields__ and getattr(Settings(), name) == value


def _print_progress(event: Progress) -> None:
    print_status(str(event.values["message"]))


def _print_folds(result: CrossValidation, *, json: bool) -> None:
    if json:
        print_json(result.json())
        return
    print_scores(result.scores)
    print()
    values = [scores[result.main] for scores in result.folds]
    listed = ", ".join(f"{value:.4f}" for value in values)
    print_table(
        [
            ("folds", f"{result.main} {listed}"),
            ("rows", f"{result.rows:,}, each scored by a model that was not trained on it"),
            ("folder", f"{result.folder}, trained on all rows in the same way"),
            report_row(result.folder, result.task),
            *next_rows(result.folder, result.task),
        ]
    )


def _print_search(result: SettingsSearch, *, json: bool) -> None:
    if json:
        print_json(result.json())
        return
    rows: list[tuple[str, str]] = []
    for trial in result.trials:
        score = "stopped, too slow" if trial.score is None else f"{trial.score:.4f}"
        rows.append((f"trial {trial.number + 1}", f"{score}  {trial.seconds:.0f} s  {_words(trial.settings)}"))
    print_table(rows)
    print()
    print_scores(result.scores)
    print()
    print_table(
        [
            ("settings", _words(result.settings)),
            ("scores", f"on {pluralize(result.test_rows, 'test row')} that chose nothing"),
            ("folder", f"{result.folder}, trained on {pluralize(result.rows, 'row')} with these settings"),
            report_row(result.folder, result.task),
            *next_rows(result.folder, result.task),
        ]
    )
    for note in result.notes:
        print(f"\nNote: {note}.")


def _print_seeds(result: SeedsResult, *, json: bool) -> None:
    if json:
        print_json(result.json())
        return
    for run in result.seeds:
        score = "no validation rows" if run.score is None else f"{result.metric} {run.score:.4f}"
        print_table([(f"seed {run.seed}", f"{score}  {run.seconds:.0f} s")])
    print()
    print_scores(result.scores)
    print()
    mean = f"the mean of {len(result.used)} seeds" if len(result.used) > 1 else f"seed {result.used[0]}"
    scored = f"of {mean}, on {pluralize(result.dev_rows, 'validation row')}" if result.dev_rows else "none"
    print_table(
        [
            ("scores", scored),
            ("time", f"{result.seconds:.0f} s; {result.ended}"),
            ("folder", f"{result.folder}, trained on {pluralize(result.rows, 'row')}"),
            report_row(result.folder, result.task),
            *next_rows(result.folder, result.task),
        ]
    )


def _words(settings: Mapping[str, Any]) -> str:
    if not settings:
        return "default settings"
    parts: Sequence[str] = [
        f"{name} {value:.2g}" if name == "lr" else f"{name} {value}" for name, value in settings.items()
    ]
    return ", ".join(parts)
