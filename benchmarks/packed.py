"""Fine-tuned copies of minilm as small files, to bring them from one machine to another.

    python benchmarks/packed.py unpack FILE.zip ... --out runs         # writes runs/NAME for each NAME.zip
    python benchmarks/packed.py pack FOLDER ... --out DIR

Matrices are stored as differences to minilm in fp16, or to whole numbers if minilm lacks them, rounded to 5 bits
with a scale per row (4 bits for the embedding table): 9 to 12.5 MB instead of 90. What comes out is what scores are
measured on, so nothing depends on the rounding.
"""

from __future__ import annotations

import argparse
import zipfile
import zlib
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from regard.checkpoint.source import minilm_folder

WEIGHTS = "model.safetensors"
PACKED = "differences.safetensors.z"
FILES = ("config.json", "run.json", "README.md", "tokenizer.json", "tokenizer_config.json", "metrics.jsonl")
LEVELS, TABLE_LEVELS = 15, 7  # largest integer; of the embedding table
TABLE_ROWS = 10_000
SCALE, START = "|scale", "|start"  # ends of the names of a tensor's scales and whole numbers
LARGE = 10_000


def pack_half(folder: Path, file: Path) -> None:
    """Write a model folder as one file, with its weights in fp16."""
    weights = safetensors.torch.load_file(folder / WEIGHTS)
    _write(folder, file, {name: tensor.half() for name, tensor in weights.items()})


def pack(folder: Path, file: Path) -> None:
    """Write a fine-tuned minilm as one file."""
    base = _base()
    tensors: dict[str, Tensor] = {}
    for name, tensor in safetensors.torch.load_file(folder / WEIGHTS).items():
        start = base.get(_plain(name))
        if tensor.dim() != 2 or tensor.numel() < LARGE:
            tensors[name] = tensor
            continue
        if start is None or start.shape != tensor.shape:
            start = tensor.float().round()
            tensors[f"{name}{START}"] = start.to(torch.int8)
        difference = (tensor.float() - start).where(tensor.half().float() != start, 0.0)  # else it has not changed
        scale = difference.abs().amax(1, keepdim=True) / (TABLE_LEVELS if len(tensor) > TABLE_ROWS else LEVELS)
        tensors[name] = (difference / scale.clamp(min=1e-20)).round().to(torch.int8)
        tensors[f"{name}{SCALE}"] = scale
    _write(folder, file, tensors)


def _write(folder: Path, file: Path, tensors: dict[str, Tensor]) -> None:
    part = file.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in FILES:
            if (folder / name).is_file():
                archive.write(folder / name, name)
        archive.writestr(PACKED, _squeezed(safetensors.torch.save(tensors)), zipfile.ZIP_STORED)
    part.rename(file)


def unpack(file: Path, folder: Path) -> None:
    """Write the model folder of a packed file."""
    base = _base()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file) as archive:
        for name in FILES:
            if name in archive.namelist():
                (folder / name).write_bytes(archive.read(name))
        tensors = safetensors.torch.load(zlib.decompress(archive.read(PACKED)))
    weights = {}
    for name, tensor in tensors.items():
        if not name.endswith((SCALE, START)):
            scale, start = tensors.get(f"{name}{SCALE}"), tensors.get(f"{name}{START}")
            start = base.get(_plain(name)) if start is None else start.float()
            weights[name] = tensor.float() if scale is None or start is None else start + tensor.float() * scale
    safetensors.torch.save_file(weights, folder / WEIGHTS, {"format": "pt"})


def _squeezed(data: bytes) -> bytes:
    """Huffman codes alone: rounded numbers have no repetitions."""
    compressor = zlib.compressobj(6, strategy=zlib.Z_HUFFMAN_ONLY)
    return compressor.compress(data) + compressor.flush()


def _plain(name: str) -> str:
    return name.removeprefix("bert.")


def _base() -> dict[str, Tensor]:
    """minilm in fp16, as it may have been carried there."""
    weights = safetensors.torch.load_file(minilm_folder() / WEIGHTS)
    return {_plain(name): tensor.half().float() for name, tensor in weights.items() if tensor.is_floating_point()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["pack", "unpack"])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for path in options.paths:
        options.out.mkdir(parents=True, exist_ok=True)
        if options.action == "pack":
            pack(path, options.out / f"{path.name}.zip")
        else:
            unpack(path, options.out / path.stem)


if __name__ == "__main__":
    main()
