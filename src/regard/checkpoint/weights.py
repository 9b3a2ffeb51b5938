"""Tensors of a folder: one safetensors file or shards with an index, memory-mapped; never a pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.checkpoint.files import inside, read_json, write_json
from regard.errors import FolderError, listed

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: where, and what its header says of it."""

    file: Path
    name: str
    shape: tuple[int, ...]

    def read(self, handles: dict[Path, Any]) -> Tensor:
        """The tensor itself, mapped from the file."""
        try:
            if self.file not in handles:
                handles[self.file] = safe_open(self.file, framework="pt")
            tensor: Tensor = handles[self.file].get_tensor(self.name)
        except (SafetensorError, OSError, ValueError, RuntimeError) as error:
            raise FolderError(f"{self.file}: the tensor {self.name} cannot be read: {error}") from error
        return tensor


def stored_tensors(folder: Path) -> dict[str, Stored]:
    """Every tensor by its stored name, from the headers alone."""
    found: dict[str, Stored] = {}
    for file in weight_files(folder):
        try:
            with safe_open(file, framework="pt") as handle:
                for name in handle.keys():  # noqa: SIM118  (not a mapping)
                    found[name] = Stored(file, name, tuple(handle.get_slice(name).get_shape()))
        except FileNotFoundError as error:
            raise FolderError(f"{folder} has no {file.name}, which its index names. Copy the missing file.") from error
        except (SafetensorError, OSError, ValueError) as error:
            raise FolderError(f"{file} is damaged or cut short: {error}. Copy or download it again.") from error
    return found


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, every name checked before any is opened."""
    if inside(folder, SINGLE).exists():
        return [folder / SINGLE]
    if inside(folder, INDEX).exists():
        places = read_json(folder, INDEX).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
            raise FolderError(f'{folder / INDEX} has no "weight_map" from tensor names to file names.')
        return [inside(folder, name) for name in sorted(set(places.values()))]
    pickles = sorted(path.name for path in folder.glob("*.bin")) + sorted(path.name for path in folder.glob("*.pt"))
    if pickles:
        raise FolderError(
            f"{folder} has its weights only as {pickles[0]}, a pickle, which can run code when it is opened and is "
            'never read here. Convert it once, where you trust it: python -c "from transformers import AutoModel; '
            f"AutoModel.from_pretrained('{folder}').save_pretrained('{folder}')\" (with the AutoModelFor… class of "
            "its task, so that the head is kept)."
        )
    raise FolderError(f"{folder} has no {SINGLE} and no {INDEX}. Expected a model folder with its weights.")


def check_finite(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse weights that are not numbers."""
    wrong = []
    for name, tensor in tensors.items():
        if tensor.dtype in FLOATS and tensor.numel():
            low, high = torch.aminmax(tensor)
            if not (torch.isfinite(low) and torch.isfinite(high)):
                wrong.append(name)
    if wrong:
        raise FolderError(
            f"{folder}: these tensors hold NaN or infinity, so the model cannot work:\n{listed(wrong)}\n"
            "Use an earlier checkpoint, or save the model again from where it was right."
        )


def write_weights(folder: Path, tensors: Mapping[str, Tensor], *, shard_bytes: int) -> None:
    """One file, or shards with an index where it would be larger than `shard_bytes`."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        if shards[-1] and size + tensor.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = tensor.detach().cpu().contiguous()
        size += tensor.nbytes
    if len(shards) == 1:
        save_file(shards[0], folder / SINGLE, metadata={"format": "pt"})
        return
    places: dict[str, str] = {}
    for i, shard in enumerate(shards, start=1):
        file = f"model-{i:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(shard, file)
    total = sum(tensor.nbytes for tensor in tensors.values())
    write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": places})
