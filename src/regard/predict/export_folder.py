"""A model folder with ONNX files, which other programs open without regard or torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.checkpoint.manifest import CARD
from regard.errors import InputError, setting
from regard.export.onnx_files import OnnxExport, OnnxFile, require_onnx, write_onnx_files
from regard.predict.load import load
from regard.predict.model import Model
from regard.predict.model_task import describe_model
from regard.progress import OnProgress

SECTION = "## ONNX files"


def export_onnx(
    model: Model | str | Path,
    out: str | Path,
    *,
    int8: bool = False,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> OnnxExport:
    """Write a model folder with the ONNX file of its encoder and heads.

    int8: also write files with 8-bit integer weights (`onnx/model_quantized.onnx`).
    progress: called before each file with `Progress("export", done, total)`, in units of about a second; its `values`
        have the name of the file.

    The files take padded batches of any size (`input_ids`, `attention_mask`, `token_type_ids`). Each is compared with
    torch on random inputs; the result has the largest difference.

        result = regard.export_onnx("runs/reviews", "runs/reviews-onnx", int8=True)
    """
    require_onnx()
    model = model if isinstance(model, Model) else load(model, device="cpu", engine="torch")
    if model.device.type != "cpu":
        raise InputError(f"the model is on {model.device}; load it with {setting('device', 'cpu')} to export it.")
    files: list[OnnxFile] = []

    def write(folder: Path) -> None:
        files.extend(write_onnx_files(model.network, folder, int8=int8, progress=progress))
        (folder / CARD).write_text(export_card(_card_before(model, Path(out).name), files), encoding="utf-8")

    target = model.save(out, overwrite=overwrite, write_extra_files=write)
    return OnnxExport(str(target), tuple(files))


def _card_before(model: Model, name: str) -> str:
    """The model card that the model has, without the section of an earlier export; a title if it has none."""
    path = None if model.folder is None else model.folder / CARD
    if path is None or not path.is_file():
        what = describe_model(model.task)
        return f"# {name}\n\n{what[0].upper()}{what[1:]}, {model.info().parameters:,} parameters."
    return path.read_text(encoding="utf-8").partition(f"\n{SECTION}\n")[0].rstrip()


def export_card(before: str, files: Sequence[OnnxFile]) -> str:
    """README.md with a section about the ONNX files: size, inputs and outputs of each, and how to run one."""
    lines = [before, "", SECTION, "", "They run in `onnxruntime`, without regard and torch.", ""]
    lines += ["| file | MB | inputs | outputs |", "|---|---|---|---|"]
    for file in files:
        inputs, outputs = (", ".join(f"`{name}`" for name in names) for names in (file.inputs, file.outputs))
        lines.append(f"| `{file.name}` | {file.bytes / 1e6:.1f} | {inputs} | {outputs} |")
    if any(file.int8 for file in files):
        lines += ["", "`_quantized` at the end of a name means 8-bit integer weights."]
    lines += ["", *_usage(files[0])]
    return "\n".join(lines) + "\n"


def _usage(file: OnnxFile) -> list[str]:
    """Code that runs the file."""
    fields = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    feed = ", ".join(f'"{name}": [encoding.{fields[name]}]' for name in file.inputs if name in fields)
    return [
        "```python",
        "import onnxruntime",
        "import tokenizers",
        "",
        'encoding = tokenizers.Tokenizer.from_file("tokenizer.json").encode("a text")',
        f'session = onnxruntime.InferenceSession("{file.name}")',
        f"feed = {{{feed}}}",
        f'result = session.run(["{file.outputs[0]}"], feed)[0]',
        "```",
    ]
