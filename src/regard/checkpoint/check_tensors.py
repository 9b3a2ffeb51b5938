"""Whether the tensors of a file are those of a network: names, shapes, heads, ties.

Everything here works on headers; only `check_copies` reads tensors.
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
from regard.config import Config, RecurrentConfig
from regard.errors import FolderError, bullet_list
from regard.model.network import Network


def saved_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Every tensor that is saved, each once, under its first name."""
    tensors: dict[str, Tensor] = dict(network.named_parameters())
    saved = set(network.state_dict(keep_vars=True))
    return tensors | {name: buffer for name, buffer in network.named_buffers() if name in saved}


def by_normalized_name(stored: Mapping[str, StoredTensor], family: Family, config: Config) -> dict[str, StoredTensor]:
    """Stored tensors under today's names; a copy of a tied tensor stands in for the original where that is absent."""
    tidied: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        short = normalize_name(name, family.prefix)
        if short in tidied:
            raise FolderError(f"{tensor.file}: {tidied[short].name} and {name} both name the tensor {short}.")
        tidied[short] = tensor
    for original, twin in family.untied.items() if not config.tied else ():
        if original in tidied:
            tidied.setdefault(twin, tidied[original])
    for twin in _copies(family, config):
        if twin in tidied and family.aliases[twin] not in tidied:
            tidied[family.aliases[twin]] = tidied[twin]
    return tidied


def tensor_mappings(
    network: nn.Module, family: Family, heads: Iterable[str], config: Config
) -> dict[str, TensorMapping]:
    theirs = family.head_names(heads, tied=config.tied)
    places: dict[str, TensorMapping] = {}
    for ours in saved_tensors(network):
        place = (
            TensorMapping((ours,))
            if family.own_names
            else find_mapping(ours, theirs) or find_mapping(ours, family.base)
        )
        if place is None:
            raise FolderError(f"the family {family.name} has no name for {ours}: its folders cannot hold this network.")
        places[ours] = place
    return places


def check_tensors(
    network: Network,
    places: Mapping[str, TensorMapping],
    stored: Mapping[str, StoredTensor],
    family: Family,
    folder: Path,
    *,
    any_heads: bool,
    anew: Sequence[str] = (),
) -> list[str]:
    """Compare names, shapes and kinds of numbers before a byte of a tensor is read; return ours that start anew.

    With `any_heads` those of heads may start anew, and the outputs of the heads in `anew` do.
    """
    missing: list[str] = []
    wrong: list[str] = []
    fresh: list[str] = []
    outputs = tuple(f"heads.{head}.output." for head in anew)
    for ours, tensor in saved_tensors(network).items():
        absent = [name for name in places[ours].names if name not in stored]
        misfit = [] if absent else _misfits(places[ours], stored, tensor, part_sizes(ours, network.config))
        may_start = (absent and ours in family.optional) or (any_heads and ours.startswith("heads."))
        if ours.startswith(outputs) or (may_start and (absent or misfit)):
            fresh.append(ours)
        else:
            missing += absent
            wrong += misfit
    used = {name for place in places.values() for name in place.names}
    known = _known(family, network.config, any_heads=any_heads)
    unread = (tensor for name, tensor in stored.items() if name not in used and not _matches(name, known))
    extra = [tensor.name for tensor in unread]
    parts = [("missing", missing), ("unexpected", extra), ("of the wrong shape or type", wrong)]
    said = [f"{len(names)} {what}:\n{bullet_list(names)}" for what, names in parts if names]
    if said:
        head = f"{folder}: the tensors do not fit a {family.name} model as config.json describes it.\n"
        raise FolderError(head + "\n".join(said))
    return fresh


def is_stored(stored: Mapping[str, StoredTensor], path: str) -> bool:
    """Whether a tensor of that name, or of a module of that name, is stored."""
    return any(name in stored for name in (path, f"{path}.weight", f"{path}.bias"))


def _copies(family: Family, config: Config) -> list[str]:
    """Names under which a tensor may be stored a second time; where the output is not tied, it is none of them."""
    if config.tied:
        return list(family.aliases)
    outputs = {name for table in family.heads.values() for value in table.values() for name in _flat(value)}
    outputs |= set(family.untied.values())
    return [twin for twin in family.aliases if twin not in outputs and twin.removesuffix(".weight") not in outputs]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _known(family: Family, config: Config, *, any_heads: bool) -> list[str]:
    """Patterns of tensors that may stand in the file without being read."""
    known = [*family.dropped, *_copies(family, config), *(() if config.tied else family.untied)]
    if any_heads and family.own_names:
        known.append("heads.*")
    if any_heads:
        known += [path + "*" for table in family.heads.values() for path in stored_paths(table)]
        known += [path + "*" for path in stored_paths({k: v for k, v in family.base.items() if k.startswith("heads.")})]
    return known


def _flat(theirs: Any) -> tuple[str, ...]:
    return theirs if isinstance(theirs, tuple) else (theirs,) if isinstance(theirs, str) else (theirs.path,)


def stored_paths(table: Mapping[str, Any]) -> list[str]:
    return [path for theirs in table.values() for path in _flat(theirs)]


def part_sizes(ours: str, config: Config) -> tuple[int, ...] | None:
    """How many rows each part of a tensor of ours has that is stored in parts; None where all have as many."""
    if ".attention.qkv." not in ours or isinstance(config, RecurrentConfig):
        return None
    queries, others = config.attention.heads * config.head_width, config.kv_heads * config.head_width
    return queries, others, others


def _misfits(
    place: TensorMapping, stored: Mapping[str, StoredTensor], ours: Tensor, sizes: tuple[int, ...] | None
) -> list[str]:
    """Stored tensors that are not what ours is made of, each with what was expected."""
    said: list[str] = []
    for name, shape in zip(place.names, place.shapes(ours.shape, sizes), strict=True):
        found = stored[name]
        if found.shape != shape:
            said.append(f"{found.name}: {found.shape}, expected {shape}")
        elif found.dtype not in FLOATS:
            said.append(f"{found.name}: {found.dtype}, expected one of {', '.join(FLOATS)}")
    return said


def check_copies(stored: Mapping[str, StoredTensor], family: Family, config: Config, folder: Path) -> None:
    """A tensor that is stored twice must be the same twice: neither is dropped for the other without a word."""
    handles: dict[Path, Any] = {}
    for twin in _copies(family, config):
        original = family.aliases[twin]
        if twin in stored and original in stored and stored[twin] != stored[original]:
            one, other = stored[twin].read(handles), stored[original].read(handles)
            if one.shape != other.shape or not torch.equal(one, other):
                raise FolderError(
                    f"{folder}: {stored[twin].name} differs from {stored[original].name}, "
                    'though config.json ties them. Set "tie_word_embeddings" to false there if they should differ.'
                )
