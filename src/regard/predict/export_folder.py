"""A model folder with ONNX files, which other programs open without regard or torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from regard.errors import InputError, setting
from regard.export.onnx_files import OnnxExport, OnnxFile, require_onnx, write_onnx_files
from regard.predict.load import load
from regard.predict.model import Model


def export_onnx(
    model: Model | str | Path,
    out: str | Path,
    *,
    int8: bool = False,
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> OnnxExport:
    """Write a model folder with ONNX files: encoders with their heads, decoders with a cache, encoder-decoders.

    int8: also write files with 8-bit integer weights (`onnx/model_quantized.onnx`).
    progress: called with each step in words.

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

    target = model.save(out, overwrite=overwrite, write_extra_files=write)
    return OnnxExport(str(target), tuple(files))
