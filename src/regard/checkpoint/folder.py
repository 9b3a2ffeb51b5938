"""A model folder in Hugging Face's format, read strictly and written whole."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.checkpoint.check_tensors import (
    by_normalized_name,
    check_copies,
    check_tensors,
    is_stored,
    part_sizes,
    saved_tensors,
    stored_paths,
    tensor_mappings,
)
from regard.checkpoint.extra_fields import KEY, STEM, is_untrained, regard_fields, regard_settings, with_regard_settings
from regard.checkpoint.families import FAMILIES, family_for, family_of
from regard.checkpoint.family import Family, HFConfig, check_types, require_settings
from regard.checkpoint.files import all_but_card, atomic_folder, read_json, write_json
from regard.checkpoint.names import TensorMapping, find_mapping
from regard.checkpoint.sidecars import (
    generation_config,
    label_count,
    label_names,
    read_companions,
    read_pooling,
    tokenizer_ids,
)
from regard.checkpoint.weights import StoredTensor, check_finite, not_finite, stored_tensors, write_weights
from regard.config import Config, ModelConfig
from regard.errors import FolderError, InputError, RegardError, bullet_list, did_you_mean
from regard.model.initialization import initialize
from regard.model.network import Network, build_network

SHARD_BYTES = 5_000_000_000
DTYPE_NAMES = {
    torch.float32: "float32",
    torch.bfloat16: "bfloat16",
    torch.float16: "float16",
    torch.float64: "float64",
}
NAMED_ALIKE = ("sequence", "token", "span")  # heads whose outputs may have one name in the files of two
LABELLED = ("sequence", "token")  # heads whose classes have names in config.json


@dataclass(frozen=True)
class Checkpoint:
    """A network with what its folder says of it."""

    family: str
    config: Config
    network: Network
    hf_config: HFConfig = field(default_factory=dict)  # config.json as it was read
    labels: tuple[str, ...] | None = None
    pooling: str | None = None  # how a sentence-transformers folder pools
    companion_files: Mapping[str, Any] = field(default_factory=dict)  # small JSON files that are kept as they are
    new_tensors: tuple[str, ...] = ()  # tensors that were not in the folder and start anew
    special_ids: Mapping[str, int] = field(
        default_factory=dict
    )  # ids by role, where the words are not the family's own
    untrained: bool = False  # all weights are randomly initialized


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
    if dtype not in DTYPE_NAMES:
        raise InputError(f"weights cannot be read as {dtype}. Choose one of: {', '.join(map(str, DTYPE_NAMES))}.")
    foreign = read_json(folder, "config.json")
    companions = read_companions(folder)
    pool = read_pooling(folder, companions)
    with _naming(folder):
        family = family_of(foreign)
        config = read_config(foreign, family)
        stored = by_normalized_name(stored_tensors(folder), family, config)
        wanted = _heads(foreign, family, stored) if heads is None else dict(heads)
        labels = label_names(foreign)
        network = _fitting(config, wanted, stored)
    places = tensor_mappings(network, family, network.heads, config)
    anew = [] if heads is None else [head for head in NAMED_ALIKE if head not in _classes(foreign, family)[1]]
    fresh = check_tensors(network, places, stored, family, folder, any_heads=heads is not None, anew=anew)
    if weights:
        _fill(network, places, stored, fresh, folder, dtype)
        check_copies(stored, family, config, folder)
    if labels is not None and len(labels) not in {size for head, size in wanted.items() if head in LABELLED}:
        labels = None
    return Checkpoint(
        family.name,
        config,
        network.eval(),
        foreign,
        labels,
        pool,
        companions,
        tuple(fresh),
        untrained=is_untrained(foreign),
    )


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Put the folder into what is said of its config.json."""
    try:
        yield
    except FolderError as error:
        said = str(error)
        if said.startswith("config.json"):
            raise FolderError(f"{folder}/{said}") from error
        raise


class _Undrawn(TorchFunctionMode):
    """Skips the drawing of weights that will be replaced; for weights without numbers it would import a compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        skipped = func in (nn.init.normal_, nn.init.uniform_, Tensor.normal_, Tensor.uniform_)
        return None if skipped else func(*args, **(kwargs or {}))  # whoever draws keeps the tensor itself


def build_on_meta(config: Config, heads: Mapping[str, int]) -> Network:
    """A network of which every tensor has its shape and no numbers yet."""
    with torch.device("meta"), _Undrawn():
        return build_network(config, heads)


def _fitting(config: Config, heads: Mapping[str, int], stored: Mapping[str, StoredTensor]) -> Network:
    """The network without its numbers."""
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


def read_config(foreign: HFConfig, family: Family) -> Config:
    """Their settings as ours, or words about the one that is wrong."""
    try:
        require_settings(foreign, quantization_config=None)
        check_types(foreign, family.defaults)
        config = family.read({**family.defaults, **foreign})
        if not family.own_names:
            config = with_regard_settings(config, foreign)
    except FolderError:
        raise
    except InputError as error:
        raise FolderError(f"config.json of a {family.name} model: {error}") from error
    except KeyError as error:
        raise FolderError(f"config.json of a {family.name} model lacks the setting {error}.") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FolderError(f"config.json of a {family.name} model cannot be read: {error!r}.") from error
    return config


def _classes(foreign: HFConfig, family: Family) -> tuple[str, tuple[str, ...]]:
    """The architecture, and the heads it has; none where it is not known."""
    given = foreign.get("architectures") or [next(iter(family.classes))]
    if not isinstance(given, list) or not isinstance(given[0], str):
        raise FolderError(f'config.json: "architectures" is {given!r}, expected a list with the name of a class.')
    return given[0], tuple(family.classes.get(given[0], ()))


def _heads(foreign: HFConfig, family: Family, stored: Mapping[str, StoredTensor]) -> dict[str, int]:
    """The heads the architecture has, and those that stand in the file beside it."""
    kind, own = _classes(foreign, family)
    if family.own_names:
        return dict.fromkeys(_own_heads(foreign, family), label_count(foreign))
    if kind not in family.classes:
        raise FolderError(
            f'config.json: the architecture "{kind}" is not known for the family {family.name}.'
            + did_you_mean(kind, family.classes)
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
    return dict.fromkeys(names, label_count(foreign))


def _own_heads(foreign: HFConfig, family: Family) -> list[str]:
    """The heads that a folder in our own format names."""
    known = {"pooled", *(head for heads in family.classes.values() for head in heads)}
    given = regard_fields(foreign).get("heads")
    if not isinstance(given, list) or not all(isinstance(head, str) and head in known for head in given):
        choices = ", ".join(sorted(known))
        raise FolderError(f'config.json: "{KEY}.heads" is {given!r:.80}, expected a list of: {choices}.')
    return given


def _fill(
    network: Network,
    places: Mapping[str, TensorMapping],
    stored: Mapping[str, StoredTensor],
    fresh: list[str],
    folder: Path,
    dtype: torch.dtype,
) -> None:
    """Read every tensor, check it, and only then put them all in."""
    handles: dict[Path, Any] = {}
    kept = {ours: place for ours, place in places.items() if ours not in fresh}
    raw = {name: stored[name].read(handles) for place in kept.values() for name in place.names}
    check_finite({stored[name].name: tensor for name, tensor in raw.items()}, folder)
    values = {ours: place.read(raw.__getitem__).to(dtype) for ours, place in kept.items()}
    if dtype == torch.float16 and (lost := not_finite(values)):
        raise FolderError(f"{folder}: these tensors hold numbers too large for fp16; use bf16:\n{bullet_list(lost)}")
    set_tensors(network, values | {name: drawn.to(dtype) for name, drawn in _drawn(network, fresh).items()})


def _drawn(network: Network, names: list[str]) -> dict[str, Tensor]:
    """Start values of tensors that the folder does not hold."""
    drawn: dict[str, Tensor] = {}
    for parent in dict.fromkeys(name.rpartition(".")[0] for name in names):
        twin = copy.deepcopy(network.get_submodule(parent)).to_empty(device="cpu", recurse=False)
        initialize(twin, network.config)
        drawn |= {f"{parent}.{leaf}": value.detach() for leaf, value in twin.named_parameters(recurse=False)}
        drawn |= {f"{parent}.{leaf}": torch.zeros_like(value) for leaf, value in twin.named_buffers(recurse=False)}
    return {name: drawn[name] for name in names}


def set_tensors(network: nn.Module, values: Mapping[str, Tensor]) -> None:
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
    write_extra_files: Callable[[Path], None] | None = None,
    drop: Callable[[set[str]], set[str]] = all_but_card,
) -> None:
    """Write the folder whole; `beside` adds files of its own (a tokenizer) before it takes its place.

    `drop` picks what is left out of the folder that is overwritten: see `atomic_folder`.
    """
    family = family_for(checkpoint.family, checkpoint.config)
    tensors = export_tensors(checkpoint, family)
    config = build_config_json(checkpoint, family)
    with atomic_folder(target, overwrite=overwrite, drop=drop) as fresh:
        write_weights(fresh, tensors, shard_bytes=shard_bytes, stem=STEM if family.own_names else "model")
        write_json(fresh / "config.json", config)
        for file in fresh.glob("*.safetensors"):
            shutil.copymode(fresh / "config.json", file)  # safetensors writes for the owner alone
        made = generation_config(config, checkpoint.network.heads)
        for name, content in {**made, **checkpoint.companion_files}.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            write_json(fresh / name, content)
        if write_extra_files is not None:
            write_extra_files(fresh)


def export_tensors(checkpoint: Checkpoint, family: Family) -> dict[str, Tensor]:
    """Every tensor under their name."""
    network, config = checkpoint.network, checkpoint.config
    if family.own_names:
        return {name: tensor.detach() for name, tensor in saved_tensors(network).items()}
    theirs = family.head_names(network.heads, tied=config.tied)
    bare = family.architecture(network.heads) == next(iter(family.classes))
    tensors: dict[str, Tensor] = {}
    for ours, tensor in saved_tensors(network).items():
        place, prefix = find_mapping(ours, theirs), ""
        if place is None:
            place, prefix = find_mapping(ours, family.base), "" if bare else family.prefix
        if place is None:
            raise FolderError(f"the family {family.name} has no name for {ours}: its folders cannot hold this network.")
        parts = place.write(tensor.detach(), part_sizes(ours, config))
        tensors |= {prefix + name: part for name, part in parts.items()}
    if not config.tied:
        tensors |= {old: tensors[new].clone() for old, new in family.untied.items() if new in tensors}
    extra = family.extra_tensors(config) if family.extra_tensors else {}
    return tensors | {("" if bare else family.prefix) + name: tensor for name, tensor in extra.items()}


def build_config_json(checkpoint: Checkpoint, family: Family) -> dict[str, Any]:
    """config.json: what was read, with what changed since."""
    given = {key: value for key, value in checkpoint.hf_config.items() if key not in (KEY, "torch_dtype")}
    written = family.write(checkpoint.config)
    if family.own_names:
        given = _without_settings(given, checkpoint)
    elif given.get("model_type", KEY) != KEY:
        before = family.write(read_config(given, family))
        written = {key: given.get(key, value) if value == before.get(key) else value for key, value in written.items()}
    own = written.pop(KEY, {}) | _own_fields(checkpoint, family)
    config = {**given, **written, "model_type": family.model_type or family.name}
    dtype = next(checkpoint.network.parameters()).dtype
    config |= {"architectures": [family.architecture(checkpoint.network.heads)], "dtype": DTYPE_NAMES[dtype]}
    ids = tokenizer_ids(config, checkpoint.special_ids) if "language" in checkpoint.network.heads else {}
    return config | ids | _labels(checkpoint) | ({KEY: own} if own else {})


def _without_settings(given: HFConfig, checkpoint: Checkpoint) -> dict[str, Any]:
    """What config.json says beside the settings of the network, which our own format keeps under its own key."""
    settings = {"transformers_version", *FAMILIES[checkpoint.family].write(checkpoint.config)}
    settings |= set(FAMILIES[checkpoint.family].defaults)
    return {key: value for key, value in given.items() if key not in settings or key.endswith("_token_id")}


def _own_fields(checkpoint: Checkpoint, family: Family) -> dict[str, Any]:
    """What only this library reads."""
    own: dict[str, Any] = {"untrained": True} if checkpoint.untrained else {}
    if family.own_names:
        return own | {"heads": list(checkpoint.network.heads)}
    settings = regard_settings(family, checkpoint.config)
    return own | ({"settings": settings} if settings else {})


def _labels(checkpoint: Checkpoint) -> dict[str, Any]:
    """Names of the classes, numbered where they have none and config.json would tell another number of them."""
    labels, heads = checkpoint.labels, checkpoint.network.heads
    weight = next((heads.get_parameter(f"{head}.output.weight") for head in LABELLED if head in heads), None)
    if labels is None and weight is not None and len(weight) != label_count(checkpoint.hf_config):
        labels = tuple(f"LABEL_{number}" for number in range(len(weight)))
    if labels is None:
        return {}
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
