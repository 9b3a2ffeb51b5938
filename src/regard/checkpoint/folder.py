"""A model folder in Hugging Face's format, read strictly and written whole."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoint.families import family_for, family_of
from regard.checkpoint.family import Family, Foreign
from regard.checkpoint.files import read_json, whole_folder, write_json
from regard.checkpoint.fit import by_tidy_name, check, check_copies, holds, own_tensors, paths, places_of
from regard.checkpoint.names import Place, place_of
from regard.checkpoint.sidecars import generation_config, labels_of, pooling_of, read_companions
from regard.checkpoint.weights import Stored, check_finite, stored_tensors, write_weights
from regard.config import ModelConfig
from regard.errors import FolderError, InputError, did_you_mean
from regard.model.initial import initialise
from regard.model.transformer import Transformer

SHARD_BYTES = 5_000_000_000
DTYPE_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


@dataclass(frozen=True)
class Checkpoint:
    """A network with what its folder says of it."""

    family: str
    config: ModelConfig
    network: Transformer
    foreign: Foreign = field(default_factory=dict)  # config.json as it was read
    labels: tuple[str, ...] | None = None
    pool: str | None = None  # how a sentence-transformers folder pools
    companions: Mapping[str, Any] = field(default_factory=dict)  # small JSON files that are kept as they are
    fresh: tuple[str, ...] = ()  # tensors that were not in the folder and start anew


def read_folder(
    folder: Path,
    *,
    heads: Mapping[str, int] | None = None,
    dtype: torch.dtype = torch.float32,
    weights: bool = True,
) -> Checkpoint:
    """The model of a folder, with the heads it has there, or with `heads`, those it lacks starting anew.

    Without `weights` the network is laid out but not filled: enough to count and to describe.
    """
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder. Expected a model folder with config.json and model.safetensors.")
    foreign = read_json(folder, "config.json")
    family = family_of(foreign)
    config = read_config(foreign, family)
    stored = by_tidy_name(stored_tensors(folder), family, config)
    wanted = _heads(foreign, family, stored) if heads is None else dict(heads)
    with torch.device("meta"):
        network = Transformer(config, wanted)
    places = places_of(network, family, network.heads, config)
    fresh = check(network, places, stored, family, folder, any_heads=heads is not None)
    if weights:
        if config.tied:
            check_copies(stored, family, folder)
        _fill(network, places, stored, fresh, folder, dtype)
    labels = labels_of(foreign) if {"sequence", "token"} & set(wanted) else None
    companions = read_companions(folder)
    return Checkpoint(
        family.name, config, network.eval(), foreign, labels, pooling_of(folder, companions), companions, tuple(fresh)
    )


def read_config(foreign: Foreign, family: Family) -> ModelConfig:
    """Their settings as ours, or words about the one that is wrong."""
    try:
        return family.read({**family.defaults, **foreign})
    except (FolderError, InputError) as error:
        raise FolderError(f"config.json of a {family.name} model: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FolderError(f"config.json of a {family.name} model cannot be read: {error!r}.") from error


def _heads(foreign: Foreign, family: Family, stored: Mapping[str, Stored]) -> dict[str, int]:
    """The heads the architecture has, and those that stand in the file beside it."""
    classes = foreign.get("architectures") or [next(iter(family.classes))]
    if classes[0] not in family.classes:
        raise FolderError(
            f'config.json: the architecture "{classes[0]}" is not known for the family {family.name}.'
            + did_you_mean(str(classes[0]), family.classes)
        )
    names = list(family.classes[classes[0]])
    for head in ("masked", "next"):
        needed = [path for path in paths(family.heads.get(head, {})) if path not in family.aliases]
        if head not in names and needed and all(holds(stored, path) for path in needed):
            names.append(head)
    pooler = place_of("heads.pooled.transform.dense.weight", family.base)
    present = pooler is not None and pooler.names[0] in stored
    if "pooled" in names and not present:
        names.remove("pooled")
    elif present and "pooled" not in names:
        names.append("pooled")
    labels = labels_of(foreign)
    count = len(labels) if labels else int(foreign.get("num_labels", 2))
    return dict.fromkeys(names, count)


def _fill(
    network: Transformer,
    places: Mapping[str, Place],
    stored: Mapping[str, Stored],
    fresh: list[str],
    folder: Path,
    dtype: torch.dtype,
) -> None:
    """Read every tensor, check it, and only then put them all in."""
    handles: dict[Path, Any] = {}
    values: dict[str, Tensor] = {}
    for ours, place in places.items():
        if ours not in fresh:
            values[ours] = place.read(lambda name: stored[name].read(handles)).to(dtype)
    check_finite(values, folder)
    put(network, values | {name: drawn.to(dtype) for name, drawn in _drawn(network, fresh).items()})


def _drawn(network: Transformer, names: list[str]) -> dict[str, Tensor]:
    """Start values of tensors that the folder does not hold."""
    drawn: dict[str, Tensor] = {}
    for parent in {name.rpartition(".")[0] for name in names}:
        twin = copy.deepcopy(network.get_submodule(parent)).to_empty(device="cpu", recurse=False)
        initialise(twin, network.config)
        drawn |= {f"{parent}.{leaf}": value.detach() for leaf, value in twin.named_parameters(recurse=False)}
        drawn |= {f"{parent}.{leaf}": torch.zeros_like(value) for leaf, value in twin.named_buffers(recurse=False)}
    return {name: drawn[name] for name in names}


def put(network: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Give the network these tensors, in every place where one is tied."""
    names: dict[int, list[str]] = {}
    for name, parameter in network.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    for ours, value in values.items():
        current = network.get_parameter(ours) if _is_parameter(network, ours) else None
        for name in names[id(current)] if current is not None else [ours]:
            path, _, leaf = name.rpartition(".")
            module = network.get_submodule(path)
            if current is None:
                setattr(module, leaf, value)
            elif name == ours:
                setattr(module, leaf, nn.Parameter(value, requires_grad=True))
            else:
                setattr(module, leaf, network.get_parameter(ours))


def _is_parameter(network: nn.Module, name: str) -> bool:
    path, _, leaf = name.rpartition(".")
    return leaf in network.get_submodule(path)._parameters


def write_folder(
    target: Path,
    checkpoint: Checkpoint,
    *,
    overwrite: bool = False,
    shard_bytes: int = SHARD_BYTES,
    beside: Callable[[Path], None] | None = None,
) -> None:
    """Write the folder whole; `beside` adds files of its own (a tokenizer) before it takes its place."""
    family = family_for(checkpoint.family, checkpoint.config)
    tensors = foreign_tensors(checkpoint, family)
    config = foreign_config(checkpoint, family)
    with whole_folder(target, overwrite=overwrite) as fresh:
        write_weights(fresh, tensors, shard_bytes=shard_bytes)
        write_json(fresh / "config.json", config)
        for name, content in (checkpoint.companions or generation_config(config, checkpoint.network.heads)).items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            write_json(fresh / name, content)
        if beside is not None:
            beside(fresh)


def foreign_tensors(checkpoint: Checkpoint, family: Family) -> dict[str, Tensor]:
    """Every tensor under their name."""
    network, config = checkpoint.network, checkpoint.config
    theirs = family.table(network.heads, tied=config.tied)
    bare = family.architecture(network.heads) == next(iter(family.classes))
    rows = config.head_width
    sizes = (config.attention.heads * rows, config.groups * rows, config.groups * rows)
    tensors: dict[str, Tensor] = {}
    for ours, tensor in own_tensors(network).items():
        place, prefix = place_of(ours, theirs), ""
        if place is None:
            place, prefix = place_of(ours, family.base), "" if bare else family.prefix
        if place is None:
            raise FolderError(f"the family {family.name} has no name for {ours}: its folders cannot hold this network.")
        split = sizes if ".attention.qkv." in ours else None
        tensors |= {prefix + name: part for name, part in place.write(tensor.detach(), split).items()}
    if not config.tied:
        tensors |= {old: tensors[new].clone() for old, new in family.untied.items() if new in tensors}
    extra = family.extra(config) if family.extra else {}
    return tensors | {("" if bare else family.prefix) + name: tensor for name, tensor in extra.items()}


def foreign_config(checkpoint: Checkpoint, family: Family) -> dict[str, Any]:
    """config.json: what was read, with what changed since."""
    given = checkpoint.foreign
    written = family.write(checkpoint.config)
    if given:
        before = family.write(read_config(given, family))
        written = {key: given.get(key, value) if value == before.get(key) else value for key, value in written.items()}
    dtype = next(checkpoint.network.parameters()).dtype
    config = {**given, **written, "model_type": family.model_type or family.name}
    config |= {"architectures": [family.architecture(checkpoint.network.heads)], "dtype": DTYPE_NAMES[dtype]}
    config.pop("torch_dtype", None)
    if checkpoint.labels is not None:
        config["id2label"] = {str(number): label for number, label in enumerate(checkpoint.labels)}
        config["label2id"] = {label: number for number, label in enumerate(checkpoint.labels)}
    return config
