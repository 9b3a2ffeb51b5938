"""`regard export`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from regard.cli.arguments import Json, ModelName, Overwrite
from regard.cli.command import Command
from regard.cli.output import format_bytes, print_json, print_status

if TYPE_CHECKING:
    from regard.progress import Progress

HELP = """Write an encoder with its head as ONNX files, which run without regard and torch.

Examples:
  regard export runs/reviews --format onnx --out runs/reviews-onnx
  regard export runs/reviews --out runs/reviews-onnx --int8
  regard predict runs/reviews-onnx "a great film" --engine int8"""


@dataclass(frozen=True)
class ExportCommand:
    model: ModelName
    out: Annotated[Path, arg(help="Folder to write: the model folder with its ONNX files.", metavar="DIR")]
    format: Annotated[Literal["onnx"], arg(help="File format.")] = "onnx"
    int8: Annotated[bool, arg(help="Also write files with 8-bit integer weights (onnx/model_quantized.onnx).")] = False
    overwrite: Overwrite = False
    json: Json = False


def run(command: ExportCommand) -> None:
    from regard.predict.export_folder import export_onnx

    with ExportProgress() as shown:
        result = export_onnx(
            command.model, command.out, int8=command.int8, overwrite=command.overwrite, progress=shown.on_progress
        )
    if command.json:
        print_json(result.json())
        return
    for file in result.files:
        difference = f"largest difference to torch {file.max_difference:.1e}"
        print(f"{command.out / file.name}  {format_bytes(file.bytes)}, {difference}")


class ExportProgress:
    """A line per file on stderr; in a terminal a line with the time left instead."""

    def __init__(self) -> None:
        self.line: Any = None
        self.started = time.monotonic()
        self.end: float | None = None

    def __enter__(self) -> ExportProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.line is not None:
            self.line.stop()

    def on_progress(self, progress: Progress) -> None:
        """A file is written next."""
        text = f"writing {progress.values['file']}"
        if not sys.stderr.isatty():
            print_status(text)
            return
        now = time.monotonic()
        left = float(max((progress.total or 0) - progress.done, 0))
        if progress.done:
            left *= (now - self.started) / progress.done
        else:
            self.started = now
        self.end = now + left
        self._show(text)

    def _show(self, text: str) -> None:
        if self.line is None:
            from rich.console import Console
            from rich.progress import Progress as Line
            from rich.progress import SpinnerColumn, TextColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[left]}"))
            self.line = Line(*columns, console=Console(stderr=True), transient=True)
            self.line.add_task(text, total=None, left=self)
            self.line.start()
        self.line.update(self.line.task_ids[0], description=text)

    def __str__(self) -> str:
        """The time left, as the line shows it each time it is drawn."""
        seconds = round((self.end or 0) - time.monotonic())
        return f"about {seconds // 60}:{seconds % 60:02d} left" if seconds > 0 else "a little longer than usual"


COMMAND = Command(name="export", arguments=ExportCommand, help=HELP, run=run)
