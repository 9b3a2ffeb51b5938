"""Whether the tensors of a file are those of a network: names, shapes, heads, ties.

Everything here works on headers; only `check_copies` reads tensors.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoint.family import Family
from regard.checkpoint.names import Place, place_of, tidy
from regard.checkpoint.weights import Stored
from regard.config import ModelConfig
from regard.errors import FolderError, listed
from regard.model.transformer import Transformer


def own_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Every tensor that is saved, each once, under its first name."""
    tensors: dict[str, Tensor] = dict(network.named_parameters())
    saved = set(network.state_dict(keep_vars=True))
    return tensors | {name: buffer for name, buffer in network.named_buffers() if name in saved}


def by_tidy_name(stored: Mapping[str, Stored], family: Family, config: ModelConfig) -> dict[str, Stored]:
    """Stored tensors under today's names; a copy of a tied tensor stands in for the original where that is absent."""
    tidied: dict[str, Stored] = {}
    for name, tensor in stored.items():
        short = tidy(name, family.prefix)
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


def places_of(network: nn.Module, family: Family, heads: Iterable[str], config: ModelConfig) -> dict[str, Place]:
    theirs = family.table(heads, tied=config.tied)
    places: dict[str, Place] = {}
    for ours in own_tensors(network):
        place = place_of(ours, theirs) or place_of(ours, family.base)
        if place is None:
            raise FolderError(f"the family {family.name} has no name for {ours}: its folders cannot hold this network.")
        places[ours] = place
    return places


def check(
    network: Transformer,
    places: Mapping[str, Place],
    stored: Mapping[str, Stored],
    family: Family,
    folder: Path,
    *,
    any_heads: bool,
) -> list[str]:
    """Compare names and shapes before a byte of a tensor is read; return ours that start anew."""
    missing: list[str] = []
    wrong: list[str] = []
    fresh: list[str] = []
    used: set[str] = set()
    for ours, tensor in own_tensors(network).items():
        absent = [name for name in places[ours].names if name not in stored]
        used.update(places[ours].names)
        if absent and (ours in family.optional or (any_heads and ours.startswith("heads."))):
            fresh.append(ours)
        elif absent:
            missing.extend(absent)
        elif (given := _shape(places[ours], stored)) != tuple(tensor.shape):
            if any_heads and ours.startswith("heads."):
                fresh.append(ours)
            else:
                wrong.append(f"{', '.join(places[ours].names)}: {given}, expected {tuple(tensor.shape)}")
    known = [*family.dropped, *_copies(family, network.config), *(() if network.config.tied else family.untied)]
    if any_heads:
        known += [path + "*" for table in family.heads.values() for path in paths(table)]
        known += [path + "*" for path in paths({k: v for k, v in family.base.items() if k.startswith("heads.")})]
    extra = [n for n in stored if n not in used and not any(fnmatch.fnmatchcase(n, pattern) for pattern in known)]
    parts = [("missing", missing), ("unexpected", extra), ("of the wrong shape", wrong)]
    said = [f"{len(names)} {what}:\n{listed(names)}" for what, names in parts if names]
    if said:
        head = f"{folder}: the tensors do not fit a {family.name} model as config.json describes it.\n"
        raise FolderError(head + "\n".join(said))
    return fresh


def holds(stored: Mapping[str, Stored], path: str) -> bool:
    """Whether a tensor of that name, or of a module of that name, is stored."""
    return any(name in stored for name in (path, f"{path}.weight", f"{path}.bias"))


def _copies(family: Family, config: ModelConfig) -> list[str]:
    """Names under which a tensor may be stored a second time; where the output is not tied, it is none of them."""
    if config.tied:
        return list(family.aliases)
    outputs = {name for table in family.heads.values() for value in table.values() for name in _flat(value)}
    return [twin for twin in family.aliases if twin not in outputs and twin.removesuffix(".weight") not in outputs]


def _flat(theirs: Any) -> tuple[str, ...]:
    return theirs if isinstance(theirs, tuple) else (theirs,) if isinstance(theirs, str) else (theirs.path,)


def paths(table: Mapping[str, Any]) -> list[str]:
    return [path for theirs in table.values() for path in _flat(theirs)]


def _shape(place: Place, stored: Mapping[str, Stored]) -> tuple[int, ...]:
    """The shape ours would have, from the headers."""
    shapes = [stored[name].shape for name in place.names]
    if place.how == "turned" and len(shapes[0]) == 2:
        return shapes[0][::-1]
    if place.how == "row":
        return shapes[0][1:] if shapes[0][:1] == (1,) else shapes[0]
    same = len({shape[1:] for shape in shapes}) == 1
    return (sum(shape[0] for shape in shapes), *shapes[0][1:]) if same and shapes[0] else shapes[0]


def check_copies(stored: Mapping[str, Stored], family: Family, folder: Path) -> None:
    """A tied tensor that is stored twice must be the same twice: neither is dropped for the other without a word."""
    handles: dict[Path, Any] = {}
    for twin, original in family.aliases.items():
        if twin in stored and original in stored and stored[twin] != stored[original]:
            one, other = stored[twin].read(handles), stored[original].read(handles)
            if one.shape != other.shape or not torch.equal(one, other):
                raise FolderError(
                    f"{folder}: {stored[twin].name} differs from {stored[original].name}, "
                    'though config.json ties them. Set "tie_word_embeddings" to false there if they should differ.'
                )
