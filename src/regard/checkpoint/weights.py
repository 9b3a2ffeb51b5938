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

from regard.checkpoint.files import read_json, write_json
from regard.checkpoint.manifest import STEMS
from regard.errors import FolderError, bullet_list, shorten
from regard.foreign import check_regular_file, file_errors, path_inside

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
FLOATS = ("F32", "BF16", "F16", "F64")
NOT_WEIGHTS = ("training_args.bin", "optimizer.bin", "scheduler.bin", "optimizer.pt", "scheduler.pt", "rng_state.pt")


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file: its name, shape and dtype from the header."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str  # as the header spells it: F32, BF16, …

    def read(self, handles: dict[Path, Any]) -> Tensor:
        """The tensor itself, mapped from the file."""
        with file_errors(f"{self.file}: the tensor {shorten(self.name, 100)}"):
            if self.file not in handles:
                check_regular_file(self.file)
                handles[self.file] = safe_open(self.file, framework="pt")
            tensor: Tensor = handles[self.file].get_tensor(self.name)
        return tensor


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor by its stored name, from the headers alone."""
    file_of_tensor = _tensor_files(folder)
    tensors: dict[str, StoredTensor] = {}
    for file in weight_files(folder):
        for name, tensor in _header(file).items():
            if name in tensors:
                raise FolderError(f"{folder}: {tensors[name].file.name} and {file.name} both hold the tensor {name}.")
            tensors[name] = tensor
    misplaced = [
        f"{name} in {file.name}"
        for name, file in file_of_tensor.items()
        if name not in tensors or tensors[name].file != file
    ]
    if misplaced:
        raise FolderError(
            f"{folder}: {INDEX} names tensors that are not there:\n{bullet_list(misplaced)}\nCopy the files again."
        )
    return tensors


def _header(file: Path) -> dict[str, StoredTensor]:
    """The tensors of a file by name, from its header."""
    with file_errors(file, fix="Copy or download it again."):
        return _opened_header(file)


def _opened_header(file: Path) -> dict[str, StoredTensor]:
    try:
        check_regular_file(file)
        with safe_open(file, framework="pt") as handle:
            parts = {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118  (not a mapping)
            return {
                name: StoredTensor(file, name, tuple(part.get_shape()), part.get_dtype())
                for name, part in parts.items()
            }
    except FileNotFoundError as error:
        raise FolderError(f"{file.parent} has no {file.name}, which its index names. Copy the missing file.") from error
    except SafetensorError as error:
        raise FolderError(
            f"{file} is damaged or cut short: {shorten(str(error))}. Copy or download it again."
        ) from error


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder; every name is checked before any file is opened."""
    return sorted(set(_tensor_files(folder).values())) or [folder / f"{_stem(folder)}.safetensors"]


def _tensor_files(folder: Path) -> dict[str, Path]:
    """The file of each tensor according to the index; empty if there is one file."""
    stem = _stem(folder)
    if path_inside(folder, f"{stem}.safetensors").exists():
        return {}
    index = f"{stem}.safetensors.index.json"
    names = read_json(folder, index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise FolderError(f'{folder / index} has no "weight_map" from tensor names to file names.')
    files = {name: path_inside(folder, name) for name in set(names.values())}
    return {tensor: files[name] for tensor, name in names.items()}


def _stem(folder: Path) -> str:
    """The name of the files with the weights, without suffix; raises FolderError if there are none."""
    for stem in STEMS:
        names = (f"{stem}.safetensors", f"{stem}.safetensors.index.json")
        if any(path_inside(folder, name).exists() for name in names):
            return stem
    raise FolderError(_missing_weights(folder))


def _missing_weights(folder: Path) -> str:
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".ckpt"))
    pickles = [name for name in pickles if name not in NOT_WEIGHTS]
    if not pickles:
        return f"{folder} has no {SINGLE} and no {INDEX}. Expected a model folder with its weights."
    command = conversion_command(str(folder), str(folder), _kind(folder))
    return (
        f"{folder} has its weights only as {pickles[0]}, a pickle, which can run code when it is opened and is "
        f"never read here. Convert it once, where you trust it: {command}"
    )


def conversion_command(source: str, target: str, kind: str) -> str:
    """The command that turns pickled weights into safetensors."""
    code = f"from transformers import {kind} as M; M.from_pretrained({source!r}).save_pretrained({target!r})"
    return f'python -c "{code}"'


def _kind(folder: Path) -> str:
    """The class that the folder was saved with, so that its head is preserved."""
    classes = read_json(folder, "config.json").get("architectures")
    kind = classes[0] if isinstance(classes, list) and classes else None
    return kind if isinstance(kind, str) and kind.isidentifier() else "AutoModel"


def check_finite(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Raise FolderError for weights with NaN or infinity."""
    wrong = not_finite(tensors)
    if wrong:
        raise FolderError(
            f"{folder}: these tensors hold NaN or infinity, so the model cannot work:\n{bullet_list(wrong)}\n"
            "Use an earlier checkpoint, or save the model again from where it was right."
        )


def not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    """Names of the tensors with NaN or infinity."""
    return [name for name, tensor in tensors.items() if tensor.numel() and not _finite(tensor)]


def _finite(tensor: Tensor) -> bool:
    low, high = torch.aminmax(tensor)
    return bool(torch.isfinite(low) and torch.isfinite(high))


def write_weights(folder: Path, tensors: Mapping[str, Tensor], *, shard_bytes: int, stem: str = "model") -> None:
    """Write one file, or shards with an index if it would be larger than `shard_bytes`."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        if shards[-1] and size + tensor.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = tensor.detach().cpu().contiguous()
        size += tensor.nbytes
    if len(shards) == 1:
        _save(shards[0], folder / f"{stem}.safetensors")
        return
    weight_map: dict[str, str] = {}
    for i, shard in enumerate(shards, start=1):
        file = f"{stem}-{i:05d}-of-{len(shards):05d}.safetensors"
        _save(shard, folder / file)
        weight_map |= dict.fromkeys(shard, file)
    total = sum(tensor.nbytes for tensor in tensors.values())
    write_json(folder / f"{stem}.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})


def _save(tensors: dict[str, Tensor], file: Path) -> None:
    try:
        save_file(tensors, file, metadata={"format": "pt"})
    except SafetensorError as error:  # also for a full disk
        raise OSError(f"{file.name}: {error}") from error
