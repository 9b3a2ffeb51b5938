"""A model folder in Hugging Face's format: reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from regard.checkpoint.check_tensors import (
    by_normalized_name,
    check_copies,
    check_extra_tensors,
    check_tensors,
    is_stored,
    stored_paths,
    tensor_mappings,
)
from regard.checkpoint.extra_fields import KEY, is_untrained, regard_fields, with_regard_settings
from regard.checkpoint.families import family_of
from regard.checkpoint.family import Family, HFConfig, check_types, require_settings
from regard.checkpoint.files import read_json
from regard.checkpoint.names import TensorMapping, find_mapping
from regard.checkpoint.network_tensors import build_on_meta, initial_values, set_tensors
from regard.checkpoint.sidecars import (
    label_count,
    label_names,
    read_companions,
    read_pooling,
)
from regard.checkpoint.weights import StoredTensor, check_finite, not_finite, stored_tensors
from regard.config import Config, ModelConfig
from regard.errors import FolderError, InputError, RegardError, bullet_list, did_you_mean
from regard.model.network import Network

DTYPE_NAMES = {
    torch.float32: "float32",
    torch.bfloat16: "bfloat16",
    torch.float16: "float16",
    torch.float64: "float64",
}
SAME_OUTPUT_NAME = ("sequence", "token", "span")  # heads whose output has the same name in the files of some families
LABELED = ("sequence", "token")  # heads whose classes have names in config.json


@dataclass(frozen=True)
class Checkpoint:
    """A network with the other content of its folder."""

    family: str
    config: Config
    network: Network
    hf_config: HFConfig = field(default_factory=dict)  # config.json as it was read
    labels: tuple[str, ...] | None = None
    pooling: str | None = None  # pooling of a sentence-transformers folder
    companion_files: Mapping[str, Any] = field(default_factory=dict)  # small JSON files, written back unchanged
    new_tensors: tuple[str, ...] = ()  # tensors that were not in the folder and are randomly initialized
    special_ids: Mapping[str, int] = field(default_factory=dict)  # ids by role, if the tokenizer is not the family's
    untrained: bool = False  # all weights are randomly initialized


def read_folder(
    folder: Path,
    *,
    heads: Mapping[str, int] | None = None,
    dtype: torch.dtype = torch.float32,
    weights: bool = True,
) -> Checkpoint:
    """Read the model of a folder.

    heads: heads with their number of classes instead of those of the folder; missing ones are randomly initialized.
    weights: if false, the network stays on the meta device: enough to count parameters and to describe it.
    """
    _check_arguments(folder, dtype)
    hf = read_json(folder, "config.json")
    companions = read_companions(folder)
    pooling = read_pooling(folder, companions)
    with _folder_in_errors(folder):
        family = family_of(hf)
        config = read_config(hf, family)
        stored = by_normalized_name(stored_tensors(folder), family, config)
        sizes = _read_heads(hf, family, stored) if heads is None else dict(heads)
        labels = label_names(hf)
        network = _build(config, sizes, stored)
    mappings = tensor_mappings(network, family, network.heads, config)
    replaced = []
    if heads is not None:
        replaced = [head for head in SAME_OUTPUT_NAME if head not in _architecture(hf, family)[1]]
    new = check_tensors(network, mappings, stored, family, folder, any_heads=heads is not None, replaced_heads=replaced)
    if weights:
        _load_weights(network, mappings, stored, new, folder, dtype)
        check_copies(stored, family, config, folder)
        check_extra_tensors(stored, family, config, folder)
    if labels is not None and len(labels) not in {size for head, size in sizes.items() if head in LABELED}:
        labels = None
    return Checkpoint(
        family.name,
        config,
        network.eval(),
        hf_config=hf,
        labels=labels,
        pooling=pooling,
        companion_files=companions,
        new_tensors=tuple(new),
        untrained=is_untrained(hf),
    )


def _check_arguments(folder: Path, dtype: torch.dtype) -> None:
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder. Expected a model folder with config.json and model.safetensors.")
    if dtype not in DTYPE_NAMES:
        raise InputError(f"weights cannot be read as {dtype}. Choose one of: {', '.join(map(str, DTYPE_NAMES))}.")


@contextmanager
def _folder_in_errors(folder: Path) -> Iterator[None]:
    """Put the name of the folder into errors about its config.json."""
    try:
        yield
    except FolderError as error:
        message = str(error)
        if message.startswith("config.json"):
            raise FolderError(f"{folder}/{message}") from error
        raise


def _build(config: Config, heads: Mapping[str, int], stored: Mapping[str, StoredTensor]) -> Network:
    """The network on the meta device."""
    distinct = config.distinct_layers if isinstance(config, ModelConfig) else None
    depth = max(distinct or config.layers, config.decoder_layers)
    if depth > len(stored):
        raise FolderError(f"config.json asks for {depth} layers, but only {len(stored)} tensors are stored.")
    try:
        return build_on_meta(config, heads)
    except RegardError:
        raise
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise FolderError(f"config.json describes a network that cannot be built: {error}") from error


def read_config(hf: HFConfig, family: Family) -> Config:
    """The settings of config.json; raises FolderError about one that is wrong."""
    try:
        require_settings(hf, quantization_config=None)
        check_types(hf, family.defaults)
        config = family.read({**family.defaults, **hf})
        if not family.own_names:
            config = with_regard_settings(config, hf)
    except FolderError:
        raise
    except InputError as error:
        raise FolderError(f"config.json of a {family.name} model: {error}") from error
    except KeyError as error:
        raise FolderError(f"config.json of a {family.name} model lacks the setting {error}.") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FolderError(f"config.json of a {family.name} model cannot be read: {error!r}.") from error
    return config


def _architecture(hf: HFConfig, family: Family) -> tuple[str, tuple[str, ...]]:
    """The class of the model and its heads; no heads if the class is not known."""
    architectures = hf.get("architectures") or [next(iter(family.classes))]
    if not isinstance(architectures, list) or not isinstance(architectures[0], str):
        raise FolderError(
            f'config.json: "architectures" is {architectures!r}, expected a list with the name of a class.'
        )
    return architectures[0], tuple(family.classes.get(architectures[0], ()))


def _read_heads(hf: HFConfig, family: Family, stored: Mapping[str, StoredTensor]) -> dict[str, int]:
    """The heads of the class, and pretraining heads that are stored too."""
    architecture, own = _architecture(hf, family)
    if family.own_names:
        return dict.fromkeys(_regard_heads(hf, family), label_count(hf))
    if architecture not in family.classes:
        raise FolderError(
            f'config.json: the architecture "{architecture}" is not known for the family {family.name}.'
            + did_you_mean(architecture, family.classes)
        )
    names = list(own)
    for head in ("masked", "next"):
        needed = [path for path in stored_paths(family.heads.get(head, {})) if path not in family.aliases]
        if head not in names and needed and all(is_stored(stored, path) for path in needed):
            names.append(head)
    pooler = find_mapping("heads.pooled.transform.dense.weight", family.base)
    present = pooler is not None and pooler.names[0] in stored
    if "pooled" in names and not present:
        names.remove("pooled")
    elif present and "pooled" not in names:
        names.append("pooled")
    return dict.fromkeys(names, label_count(hf))


def _regard_heads(hf: HFConfig, family: Family) -> list[str]:
    """The heads of a folder in our own format."""
    known = {"pooled", *(head for heads in family.classes.values() for head in heads)}
    names = regard_fields(hf).get("heads")
    if not isinstance(names, list) or not all(isinstance(head, str) and head in known for head in names):
        choices = ", ".join(sorted(known))
        raise FolderError(f'config.json: "{KEY}.heads" is {names!r:.80}, expected a list of: {choices}.')
    return names


def _load_weights(
    network: Network,
    mappings: Mapping[str, TensorMapping],
    stored: Mapping[str, StoredTensor],
    new: Sequence[str],
    folder: Path,
    dtype: torch.dtype,
) -> None:
    """Read and check every tensor, and only then put them into the network; `new` ones are randomly initialized."""
    handles: dict[Path, Any] = {}
    read = {ours: mapping for ours, mapping in mappings.items() if ours not in new}
    raw = {name: stored[name].read(handles) for mapping in read.values() for name in mapping.names}
    check_finite({stored[name].name: tensor for name, tensor in raw.items()}, folder)
    values = {ours: mapping.read(raw.__getitem__).to(dtype) for ours, mapping in read.items()}
    if dtype == torch.float16 and (overflowed := not_finite(values)):
        names = bullet_list(overflowed)
        raise FolderError(f"{folder}: these tensors have values too large for fp16; use bf16:\n{names}")
    initial = {name: value.to(dtype) for name, value in initial_values(network, new).items()}
    set_tensors(network, values | initial)
