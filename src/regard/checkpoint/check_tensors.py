"""Checks that the stored tensors are those of a network: names, shapes, heads, ties.

Everything here works on the headers of files; only `check_copies` and `check_extra_tensors` read tensors.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoint.family import Family
from regard.checkpoint.names import TensorMapping, find_mapping, normalize_name
from regard.checkpoint.weights import FLOATS, StoredTensor
from regard.config import Config, ModelConfig
from regard.errors import FolderError, bullet_list
from regard.model.network import Network

ROUNDING = 0.01  # largest difference of a computed table that was stored in half precision


def saved_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter and saved buffer of the network, tied ones once under their first name."""
    tensors: dict[str, Tensor] = dict(network.named_parameters())
    saved = set(network.state_dict(keep_vars=True))
    return tensors | {name: buffer for name, buffer in network.named_buffers() if name in saved}


def by_normalized_name(stored: Mapping[str, StoredTensor], family: Family, config: Config) -> dict[str, StoredTensor]:
    """Stored tensors under normalized names; a copy of a tied tensor replaces an original that is not stored."""
    normalized: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        short = normalize_name(name, family.prefix)
        if short in normalized:
            raise FolderError(f"{tensor.file}: {normalized[short].name} and {name} both name the tensor {short}.")
        normalized[short] = tensor
    for original, copy in family.untied.items() if not config.tied else ():
        if original in normalized:
            normalized.setdefault(copy, normalized[original])
    for copy in _copies(family, config):
        if copy in normalized and family.aliases[copy] not in normalized:
            normalized[family.aliases[copy]] = normalized[copy]
    return normalized


def tensor_mappings(
    network: nn.Module, family: Family, heads: Iterable[str], config: Config
) -> dict[str, TensorMapping]:
    """For each tensor of the network, the stored tensors that it is made of."""
    head_names = family.head_names(heads, tied=config.tied)
    mappings: dict[str, TensorMapping] = {}
    for ours in saved_tensors(network):
        if family.own_names:
            mapping: TensorMapping | None = TensorMapping((ours,))
        else:
            mapping = find_mapping(ours, head_names) or find_mapping(ours, family.base)
        if mapping is None:
            raise FolderError(f"the family {family.name} has no name for {ours}: its folders cannot hold this network.")
        mappings[ours] = mapping
    return mappings


def check_tensors(
    network: Network,
    mappings: Mapping[str, TensorMapping],
    stored: Mapping[str, StoredTensor],
    family: Family,
    folder: Path,
    *,
    any_heads: bool,
    replaced_heads: Sequence[str] = (),
) -> list[str]:
    """Compare names, shapes and dtypes before any tensor is read; returns the tensors that must be initialized.

    any_heads: heads that are not stored, or have another shape, are initialized.
    replaced_heads: heads whose outputs are initialized even if they are stored.
    """
    missing: list[str] = []
    wrong: list[str] = []
    new: list[str] = []
    replaced = tuple(f"heads.{head}.output." for head in replaced_heads)
    for ours, tensor in saved_tensors(network).items():
        absent = [name for name in mappings[ours].names if name not in stored]
        misfits = [] if absent else _misfits(mappings[ours], stored, tensor, part_sizes(ours, network.config))
        may_be_new = (absent and ours in family.optional) or (any_heads and ours.startswith("heads."))
        if ours.startswith(replaced) or (may_be_new and (absent or misfits)):
            new.append(ours)
        else:
            missing += absent
            wrong += misfits
    unexpected = _unexpected(mappings, stored, _known(family, network.config, any_heads=any_heads))
    _raise_mismatch(folder, family, missing=missing, unexpected=unexpected, wrong=wrong)
    return new


def _unexpected(
    mappings: Mapping[str, TensorMapping], stored: Mapping[str, StoredTensor], known: Sequence[str]
) -> list[str]:
    """Names of stored tensors that the network does not use."""
    used = {name for mapping in mappings.values() for name in mapping.names}
    return [tensor.name for name, tensor in stored.items() if name not in used and not _matches(name, known)]


def _raise_mismatch(
    folder: Path, family: Family, *, missing: Sequence[str], unexpected: Sequence[str], wrong: Sequence[str]
) -> None:
    parts = [("missing", missing), ("unexpected", unexpected), ("of the wrong shape or type", wrong)]
    messages = [f"{len(names)} {what}:\n{bullet_list(names)}" for what, names in parts if names]
    if messages:
        head = f"{folder}: the tensors do not fit a {family.name} model as config.json describes it.\n"
        raise FolderError(head + "\n".join(messages))


def is_stored(stored: Mapping[str, StoredTensor], path: str) -> bool:
    """Whether a tensor of that name, or of a module of that name, is stored."""
    return any(name in stored for name in (path, f"{path}.weight", f"{path}.bias"))


def _copies(family: Family, config: Config) -> list[str]:
    """Names under which a tied tensor may be stored a second time; without the output if that is not tied."""
    if config.tied:
        return list(family.aliases)
    outputs = {name for table in family.heads.values() for value in table.values() for name in _flat(value)}
    outputs |= set(family.untied.values())
    return [copy for copy in family.aliases if copy not in outputs and copy.removesuffix(".weight") not in outputs]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _known(family: Family, config: Config, *, any_heads: bool) -> list[str]:
    """Patterns of tensors that may be stored without being used."""
    known = [*family.dropped, *_copies(family, config), *(() if config.tied else family.untied)]
    if any_heads and family.own_names:
        known.append("heads.*")
    if any_heads:
        known += [path + "*" for table in family.heads.values() for path in stored_paths(table)]
        known += [path + "*" for path in stored_paths({k: v for k, v in family.base.items() if k.startswith("heads.")})]
    return known


def _flat(name: Any) -> tuple[str, ...]:
    if isinstance(name, tuple):
        return name
    return (name,) if isinstance(name, str) else (name.path,)


def stored_paths(table: Mapping[str, Any]) -> list[str]:
    return [path for theirs in table.values() for path in _flat(theirs)]


def part_sizes(ours: str, config: Config) -> tuple[int, ...] | None:
    """Rows of each part of a tensor that is stored in parts; None if all parts have the same size."""
    if ".attention.qkv." not in ours or not isinstance(config, ModelConfig):
        return None
    queries = config.attention.heads * config.head_width
    keys = config.kv_heads * config.head_width
    return queries, keys, keys


def _misfits(
    mapping: TensorMapping, stored: Mapping[str, StoredTensor], ours: Tensor, sizes: tuple[int, ...] | None
) -> list[str]:
    """Stored tensors of another shape or dtype, each with what was expected."""
    messages: list[str] = []
    for name, shape in zip(mapping.names, mapping.shapes(ours.shape, sizes), strict=True):
        tensor = stored[name]
        if tensor.shape != shape:
            messages.append(f"{tensor.name}: {tensor.shape}, expected {shape}")
        elif tensor.dtype not in FLOATS:
            messages.append(f"{tensor.name}: {tensor.dtype}, expected one of {', '.join(FLOATS)}")
    return messages


def check_copies(stored: Mapping[str, StoredTensor], family: Family, config: Config, folder: Path) -> None:
    """Raise FolderError if two copies of a tied tensor differ: neither is dropped silently."""
    handles: dict[Path, Any] = {}
    for copy in _copies(family, config):
        original = family.aliases[copy]
        if copy in stored and original in stored and stored[copy] != stored[original]:
            first = stored[copy].read(handles)
            second = stored[original].read(handles)
            if first.shape != second.shape or not torch.equal(first, second):
                raise FolderError(
                    f"{folder}: {stored[copy].name} differs from {stored[original].name}, "
                    'though config.json ties them. Set "tie_word_embeddings" to false there if they should differ.'
                )


def check_extra_tensors(stored: Mapping[str, StoredTensor], family: Family, config: Config, folder: Path) -> None:
    """Raise FolderError if a stored tensor that the network computes itself has other values."""
    handles: dict[Path, Any] = {}
    computed = {} if family.extra_tensors is None else family.extra_tensors(config)
    for name in (name for name in computed if name in stored):
        theirs, ours = stored[name].read(handles), computed[name]
        if theirs.shape != ours.shape or not torch.allclose(theirs.float(), ours, rtol=0, atol=ROUNDING):
            raise FolderError(
                f"{folder}: {stored[name].name} differs from what a {family.name} model computes from config.json, so "
                "this would be another network. Other positions than fixed sines and cosines are not supported."
            )
