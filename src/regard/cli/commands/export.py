"""`regard export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from regard.cli.arguments import Json, ModelName, Overwrite
from regard.cli.command import Command
from regard.cli.output import format_bytes, print_json, print_status

HELP = """Write a model as ONNX files, which run without regard and torch.

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

    result = export_onnx(
        command.model,
        command.out,
        int8=command.int8,
        overwrite=command.overwrite,
        progress=None if command.json else print_status,
    )
    if command.json:
        print_json(result.json())
        return
    for file in result.files:
        difference = f"largest difference to torch {file.max_difference:.1e}"
        print(f"{command.out / file.name}  {format_bytes(file.bytes)}, {difference}")


COMMAND = Command(name="export", arguments=ExportCommand, help=HELP, run=run)
