"""Our own fields in config.json, under one key: settings that Hugging Face's fields cannot hold.

A network that a family's config.json describes exactly is written as that family, and transformers opens it. Where only
settings of training differ (dropout, spread of initial weights), these stand beside it. Any other network is written in
our own format: another model_type, our names of tensors and another file for them, so that no other library can take it
for something else.
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
    """What config.json holds of ours; empty where it holds nothing."""
    found = hf.get(KEY, {})
    if not isinstance(found, dict):
        raise FolderError(f'config.json: "{KEY}" is {found!r:.80}, expected an object.')
    for name in found:
        if name not in FIELDS:
            raise FolderError(f'config.json: "{KEY}" holds "{name:.80}".{did_you_mean(name[:80], FIELDS)}')
    return found


def is_untrained(hf: HFConfig) -> bool:
    """Whether the weights are marked as randomly initialized. What transformers saved again may be trained since."""
    return regard_fields(hf).get("untrained") is True and "transformers_version" not in hf


def format_for(family: Family, config: Config) -> Family:
    """The family itself where its config.json can hold these settings, else our own format of it."""
    return regard_format(family) if isinstance(config, ModelConfig) and not _represents(family, config) else family


def regard_format(family: Family) -> Family:
    """The same family with settings and tensors under our names."""

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
    """The settings of a family with those of training that its own fields could not hold."""
    given = regard_fields(hf).get("settings")
    if given is None or not isinstance(config, ModelConfig):
        return config
    if not isinstance(given, dict):
        raise FolderError(f'config.json: "{KEY}.settings" is {given!r:.80}, expected an object.')
    plain = training_settings(config)
    for name in given:
        if name not in plain:
            raise FolderError(f'config.json: "{KEY}.settings" holds "{name:.80}".{did_you_mean(name[:80], plain)}')
    for name, value in given.items():
        if not (_is_number(value) or (name == "init_std" and value is None)):
            raise FolderError(f'config.json: "{KEY}.settings.{name}" is {value!r:.80}, expected a number.')
    return _with_training(config, plain | given)


def regard_settings(family: Family, config: Config) -> dict[str, Any]:
    """Settings of training that the family's own fields cannot hold."""
    again = _read_again(family, config) if isinstance(config, ModelConfig) else None
    if again is None or not isinstance(config, ModelConfig):
        return {}
    plain = training_settings(again)
    return {name: value for name, value in training_settings(config).items() if value != plain[name]}


def training_settings(config: ModelConfig) -> dict[str, float | None]:
    """What changes how a network is trained, and nothing of what it computes afterwards."""
    return {"dropout": config.dropout, "attention_dropout": config.attention.dropout, "init_std": config.init_std}


def _with_training(config: ModelConfig, settings: Mapping[str, Any]) -> ModelConfig:
    attention = replace(config.attention, dropout=settings["attention_dropout"])
    return replace(config, attention=attention, dropout=settings["dropout"], init_std=settings["init_std"])


def _represents(family: Family, config: ModelConfig) -> bool:
    """Whether a config.json of the family describes a network that computes the same."""
    again = _read_again(family, config)
    return again is not None and _canonical(again) == _canonical(config)


def _read_again(family: Family, config: ModelConfig) -> ModelConfig | None:
    """The settings as they would be read back; None where they cannot be read."""
    try:
        written = family.write(config)
        check_types(written, family.defaults)
        again = family.read({**family.defaults, **written})
    except (RegardError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None
    return again if isinstance(again, ModelConfig) else None


def _canonical(config: ModelConfig) -> ModelConfig:
    """Equal for networks that compute the same: defaults filled in, values without an effect dropped."""
    attention, places = config.attention, config.positions
    local = attention.window is not None
    rotary, relative = places.kind == "rotary", places.kind == "relative"
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
            places,
            offset=places.offset if places.kind == "learned" else 0,
            theta=places.theta if rotary else 10000.0,
            local_theta=(places.local_theta or places.theta) if rotary and local else None,
            scaling=_canonical_scaling(places.scaling) if rotary else None,
            buckets=places.buckets if relative else 32,
            max_distance=places.max_distance if relative else 128,
        ),
    )


def _canonical_scaling(scaling: Any) -> Any:
    if scaling is None or scaling.kind == "yarn":
        return scaling
    if scaling.kind == "llama3":
        return replace(scaling, attention=None)
    return replace(scaling, original_length=None, low=1.0, high=1.0, attention_factor=None)


def _decoded(kind: Any, given: Any, where: str) -> Any:
    """A dataclass of settings from a JSON object, every value of the right type."""
    if not isinstance(given, dict):
        raise FolderError(f'config.json: "{KEY}.{where}" is {given!r:.80}, expected an object.')
    hints = typing.get_type_hints(kind)
    for name in given:
        if name not in hints:
            raise FolderError(f'config.json: "{KEY}.{where}" holds "{name:.80}".{did_you_mean(name[:80], hints)}')
    missing = [field.name for field in fields(kind) if field.name not in given and _is_required(field)]
    if missing:
        raise FolderError(f'config.json: "{KEY}.{where}" lacks {", ".join(missing)}.')
    return kind(**{name: _value(hints[name], value, f"{where}.{name}") for name, value in given.items()})


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _value(hint: Any, given: Any, where: str) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if given is None and type(None) in options:
        return None
    kind = next(option for option in options if option is not type(None))
    if is_dataclass(kind):
        return _decoded(kind, given, where)
    if kind is float:
        fits = _is_number(given)
    else:
        kind = kind if isinstance(kind, type) else str  # a Literal of texts
        fits = type(given) is kind
    if not fits:
        raise FolderError(f'config.json: "{KEY}.{where}" is {given!r:.80}, expected {kind.__name__}.')
    return given


def _is_number(given: Any) -> bool:
    if isinstance(given, float):
        return math.isfinite(given)
    return type(given) is int and abs(given) < 1 << 53
