"""The object "regard" in config.json: settings that the fields of the family cannot express.

A network that a family's config.json describes exactly is written as that family, and transformers opens it. If only
training settings differ (dropout, standard deviation of initial weights), these are in the object "regard". Any other
network is written in our own format: another model_type, our names of tensors and another file name, so that no other
library loads it as something else.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from typing import Any

from regard.checkpoint.family import Family, HFConfig, check_types
from regard.config import Config, ModelConfig
from regard.errors import FolderError, RegardError, did_you_mean

KEY = "regard"  # of the object in config.json, and the model_type of our own format
STEM = "regard"  # of the files with the weights in our own format
FIELDS = ("family", "heads", "settings", "untrained")


def regard_fields(hf: HFConfig) -> Mapping[str, Any]:
    """The object "regard" of a config.json; empty if there is none."""
    own = hf.get(KEY, {})
    if not isinstance(own, dict):
        raise FolderError(f'config.json: "{KEY}" is {own!r:.80}, expected an object.')
    for name in own:
        if name not in FIELDS:
            raise FolderError(f'config.json: "{KEY}" holds "{name:.80}".{did_you_mean(name[:80], FIELDS)}')
    return own


def is_untrained(hf: HFConfig) -> bool:
    """Whether the weights are marked as randomly initialized. A folder saved by transformers may be trained since."""
    return regard_fields(hf).get("untrained") is True and "transformers_version" not in hf


def format_for(family: Family, config: Config) -> Family:
    """The family itself if its config.json can express these settings, else our own format of it."""
    return regard_format(family) if isinstance(config, ModelConfig) and not _represents(family, config) else family


def regard_format(family: Family) -> Family:
    """The family in our own format: settings and tensors under our names."""

    def write(config: ModelConfig) -> dict[str, Any]:
        return _token_ids(family.write(config)) | {KEY: {"family": family.name, "settings": asdict(config)}}

    return replace(
        family,
        classes={f"Regard{name}": heads for name, heads in family.classes.items()},
        defaults={},
        read=_read_all,
        write=write,
        prefix="",
        base={},
        heads={head: {} for head in family.heads},
        aliases={},
        untied={},
        dropped=(),
        optional=(),
        extra_tensors=None,
        model_type=KEY,
        in_transformers=False,
        own_names=True,
    )


def _token_ids(written: Mapping[str, Any]) -> dict[str, Any]:
    ids = {key: value for key, value in written.items() if key.endswith("_token_id")}
    return {key: value for key, value in ids.items() if value is None or value >= 0}


def _read_all(hf: HFConfig) -> ModelConfig:
    config: ModelConfig = _decoded(ModelConfig, regard_fields(hf).get("settings"), "settings")
    return config


def with_regard_settings(config: Config, hf: HFConfig) -> Config:
    """The settings with the training settings of the object "regard"."""
    stored = regard_fields(hf).get("settings")
    if stored is None or not isinstance(config, ModelConfig):
        return config
    if not isinstance(stored, dict):
        raise FolderError(f'config.json: "{KEY}.settings" is {stored!r:.80}, expected an object.')
    known = training_settings(config)
    for name in stored:
        if name not in known:
            raise FolderError(f'config.json: "{KEY}.settings" holds "{name:.80}".{did_you_mean(name[:80], known)}')
    for name, value in stored.items():
        if not (_is_number(value) or (name == "init_std" and value is None)):
            raise FolderError(f'config.json: "{KEY}.settings.{name}" is {value!r:.80}, expected a number.')
    return _with_training(config, known | stored)


def regard_settings(family: Family, config: Config) -> dict[str, Any]:
    """Training settings that the family's own fields cannot express."""
    restored = _read_again(family, config) if isinstance(config, ModelConfig) else None
    if restored is None or not isinstance(config, ModelConfig):
        return {}
    plain = training_settings(restored)
    return {name: value for name, value in training_settings(config).items() if value != plain[name]}


def training_settings(config: ModelConfig) -> dict[str, float | None]:
    """Settings that change the training of a network, but not what it computes afterwards."""
    return {"dropout": config.dropout, "attention_dropout": config.attention.dropout, "init_std": config.init_std}


def _with_training(config: ModelConfig, settings: Mapping[str, Any]) -> ModelConfig:
    attention = replace(config.attention, dropout=settings["attention_dropout"])
    return replace(config, attention=attention, dropout=settings["dropout"], init_std=settings["init_std"])


def _represents(family: Family, config: ModelConfig) -> bool:
    """Whether a config.json of the family describes a network that computes the same."""
    restored = _read_again(family, config)
    return restored is not None and _canonical(restored) == _canonical(config)


def _read_again(family: Family, config: ModelConfig) -> ModelConfig | None:
    """The settings after writing and reading them; None if that fails."""
    try:
        written = family.write(config)
        check_types(written, family.defaults)
        restored = family.read({**family.defaults, **written})
    except (RegardError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None
    return restored if isinstance(restored, ModelConfig) else None


def _canonical(config: ModelConfig) -> ModelConfig:
    """Equal for networks that compute the same: defaults filled in, settings without an effect reset."""
    attention = config.attention
    positions = config.positions
    local = attention.window is not None
    rotary = positions.kind == "rotary"
    relative = positions.kind == "relative"
    return replace(
        config,
        dropout=0.0,
        init_std=None,
        distinct_layers=config.distinct_layers or config.layers,
        attention=replace(
            attention,
            dropout=0.0,
            kv_heads=config.kv_heads,
            head_width=config.head_width,
            global_every=attention.global_every if local else 0,
        ),
        positions=replace(
            positions,
            offset=positions.offset if positions.kind == "learned" else 0,
            theta=positions.theta if rotary else 10000.0,
            local_theta=(positions.local_theta or positions.theta) if rotary and local else None,
            scaling=_canonical_scaling(positions.scaling) if rotary else None,
            buckets=positions.buckets if relative else 32,
            max_distance=positions.max_distance if relative else 128,
        ),
    )


def _canonical_scaling(scaling: Any) -> Any:
    if scaling is None or scaling.kind == "yarn":
        return scaling
    if scaling.kind == "llama3":
        return replace(scaling, attention_factor=None)
    return replace(scaling, original_length=None, low=1.0, high=1.0, attention_factor=None)


def _decoded(kind: Any, value: Any, where: str) -> Any:
    """A dataclass of settings from a JSON object; raises FolderError for a value of the wrong type."""
    if not isinstance(value, dict):
        raise FolderError(f'config.json: "{KEY}.{where}" is {value!r:.80}, expected an object.')
    hints = typing.get_type_hints(kind)
    for name in value:
        if name not in hints:
            raise FolderError(f'config.json: "{KEY}.{where}" holds "{name:.80}".{did_you_mean(name[:80], hints)}')
    missing = [field.name for field in fields(kind) if field.name not in value and _is_required(field)]
    if missing:
        raise FolderError(f'config.json: "{KEY}.{where}" has no {", ".join(missing)}.')
    return kind(**{name: _value(hints[name], item, f"{where}.{name}") for name, item in value.items()})


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _value(hint: Any, value: Any, where: str) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    kind = next(option for option in options if option is not type(None))
    if is_dataclass(kind):
        return _decoded(kind, value, where)
    if kind is float:
        is_valid = _is_number(value)
    else:
        kind = kind if isinstance(kind, type) else str  # a Literal of texts
        is_valid = type(value) is kind
    if not is_valid:
        raise FolderError(f'config.json: "{KEY}.{where}" is {value!r:.80}, expected {kind.__name__}.')
    return value


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) < 1 << 53
