"""A model folder in Hugging Face's format: writing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.checkpoint.check_tensors import (
    part_sizes,
    saved_tensors,
)
from regard.checkpoint.extra_fields import KEY, STEM, regard_settings
from regard.checkpoint.families import FAMILIES, family_for
from regard.checkpoint.family import Family, HFConfig
from regard.checkpoint.files import all_but_card, atomic_folder, write_json
from regard.checkpoint.folder import DTYPE_NAMES, LABELED, Checkpoint, read_config
from regard.checkpoint.names import find_mapping
from regard.checkpoint.sidecars import (
    generation_config,
    label_count,
    tokenizer_ids,
)
from regard.checkpoint.weights import write_weights
from regard.errors import FolderError

SHARD_BYTES = 5_000_000_000


def write_folder(
    target: Path,
    checkpoint: Checkpoint,
    *,
    overwrite: bool = False,
    shard_bytes: int = SHARD_BYTES,
    write_extra_files: Callable[[Path], None] | None = None,
    drop: Callable[[set[str]], set[str]] = all_but_card,
) -> None:
    """Write a model folder completely or not at all.

    write_extra_files: writes further files, such as the tokenizer, into the temporary folder.
    drop: chooses the files of an overwritten folder that are removed; see `atomic_folder`.
    """
    family = family_for(checkpoint.family, checkpoint.config)
    tensors = export_tensors(checkpoint, family)
    config = build_config_json(checkpoint, family)
    with atomic_folder(target, overwrite=overwrite, drop=drop) as temporary:
        write_weights(temporary, tensors, shard_bytes=shard_bytes, stem=STEM if family.own_names else "model")
        write_json(temporary / "config.json", config)
        for file in temporary.glob("*.safetensors"):
            shutil.copymode(temporary / "config.json", file)  # safetensors creates files that only the owner can read
        generation = generation_config(config, checkpoint.network.heads)
        for name, content in {**generation, **checkpoint.companion_files}.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            write_json(temporary / name, content)
        if write_extra_files is not None:
            write_extra_files(temporary)


def export_tensors(checkpoint: Checkpoint, family: Family) -> dict[str, Tensor]:
    """Every tensor under its name in the family's files."""
    network, config = checkpoint.network, checkpoint.config
    if family.own_names:
        return {name: tensor.detach() for name, tensor in saved_tensors(network).items()}
    names = family.head_names(network.heads, tied=config.tied)
    without_head = family.architecture(network.heads) == next(iter(family.classes))
    base_prefix = "" if without_head else family.prefix
    tensors: dict[str, Tensor] = {}
    for ours, tensor in saved_tensors(network).items():
        mapping = find_mapping(ours, names)
        prefix = ""
        if mapping is None:
            mapping = find_mapping(ours, family.base)
            prefix = base_prefix
        if mapping is None:
            raise FolderError(f"the family {family.name} has no name for {ours}: its folders cannot hold this network.")
        parts = mapping.write(tensor.detach(), part_sizes(ours, config))
        tensors |= {prefix + name: part for name, part in parts.items()}
    if not config.tied:
        tensors |= {old: tensors[new].clone() for old, new in family.untied.items() if new in tensors}
    extra = family.extra_tensors(config) if family.extra_tensors else {}
    return tensors | {base_prefix + name: tensor for name, tensor in extra.items()}


def build_config_json(checkpoint: Checkpoint, family: Family) -> dict[str, Any]:
    """The content of config.json: the fields that were read, with the changes since."""
    fields = {key: value for key, value in checkpoint.hf_config.items() if key not in (KEY, "torch_dtype")}
    written = family.write(checkpoint.config)
    if family.own_names:
        fields = _without_settings(fields, checkpoint)
    elif fields.get("model_type", KEY) != KEY:
        before = family.write(read_config(fields, family))
        written = {key: fields.get(key, value) if value == before.get(key) else value for key, value in written.items()}
    own = written.pop(KEY, {}) | _regard_object(checkpoint, family)
    config = {**fields, **written, "model_type": family.model_type or family.name}
    dtype = next(checkpoint.network.parameters()).dtype
    config |= {"architectures": [family.architecture(checkpoint.network.heads)], "dtype": DTYPE_NAMES[dtype]}
    ids = tokenizer_ids(config, checkpoint.special_ids) if "language" in checkpoint.network.heads else {}
    return config | ids | _labels(checkpoint) | ({KEY: own} if own else {})


def _without_settings(fields: HFConfig, checkpoint: Checkpoint) -> dict[str, Any]:
    """The fields of config.json that are not settings of the network: our own format has these under its own key."""
    settings = {"transformers_version", *FAMILIES[checkpoint.family].write(checkpoint.config)}
    settings |= set(FAMILIES[checkpoint.family].defaults)
    return {key: value for key, value in fields.items() if key not in settings or key.endswith("_token_id")}


def _regard_object(checkpoint: Checkpoint, family: Family) -> dict[str, Any]:
    """The object "regard" of config.json, which other libraries ignore."""
    own: dict[str, Any] = {"untrained": True} if checkpoint.untrained else {}
    if family.own_names:
        return own | {"heads": list(checkpoint.network.heads)}
    settings = regard_settings(family, checkpoint.config)
    return own | ({"settings": settings} if settings else {})


def _labels(checkpoint: Checkpoint) -> dict[str, Any]:
    """Names of the classes; numbered ones if they have none and config.json has another number of classes."""
    labels, heads = checkpoint.labels, checkpoint.network.heads
    weight = next((heads.get_parameter(f"{head}.output.weight") for head in LABELED if head in heads), None)
    if labels is None and weight is not None and len(weight) != label_count(checkpoint.hf_config):
        labels = tuple(f"LABEL_{number}" for number in range(len(weight)))
    if labels is None:
        return {}
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
