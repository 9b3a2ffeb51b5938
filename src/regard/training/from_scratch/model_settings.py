"""Settings of a network that is trained from scratch: what differs from its preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, get_type_hints

from regard.checkpoint.families import preset
from regard.config import ACTIVATIONS, Config, ModelConfig, RecurrentConfig
from regard.errors import InputError, call_or_command, did_you_mean, setting

Positions = Literal["none", "learned", "sinusoidal", "rotary", "relative", "alibi"]
RECURRENT = ("layers", "width", "cell", "attention.score", "attention.window")  # settings of a recurrent network


@dataclass(frozen=True)
class AttentionSettings:
    """The attention layers of a network that is trained from scratch."""

    heads: int | None = None  # Attention heads; if not given, those of the preset.
    kv_heads: int | None = None  # Heads of keys and values; fewer than the heads share them (grouped attention).
    head_width: int | None = None  # Width of a head; if not given, the width divided by the heads.
    # Score of a query and a key: dot product, scaled dot product, cosine, bilinear or additive.
    score: Literal["dot", "scaled", "cosine", "bilinear", "additive"] | None = None
    select: Literal["soft", "hard"] | None = None  # Weights over all keys (soft), or the best key alone (hard).
    window: int | None = None  # Tokens on each side that are attended to; if not given, all.


@dataclass(frozen=True)
class ModelSettings:
    """What differs from the preset, for a network that is trained from scratch."""

    layers: int | None = None  # Layers of the encoder, or of a network that is a decoder only.
    decoder_layers: int | None = None  # Layers of the decoder of an encoder-decoder.
    width: int | None = None  # Width of the hidden states.
    ffn_width: int | None = None  # Width of the feed-forward layers; if not given, in proportion to the width.
    positions: Positions | None = None  # Positions of tokens: none, learned, sinusoidal, rotary, relative or alibi.
    max_tokens: int | None = None  # Maximum tokens of a sequence.
    activation: str | None = None  # Activation of the feed-forward layers, such as relu, gelu or swiglu.
    norm: Literal["layer", "rms"] | None = None  # Normalization: layer norm or RMS norm.
    norm_first: bool | None = None  # Normalize before each sublayer (pre-norm, yes) or after it (post-norm, no).
    cell: Literal["gru", "lstm"] | None = None  # Cell of a recurrent network.
    attention: AttentionSettings = AttentionSettings()

    def check(self) -> None:
        """Called by Settings: for an error in `__post_init__`, the command line would not name the flag."""
        if self.activation is not None and self.activation not in ACTIVATIONS:
            name = setting("model.activation")
            raise InputError(f'{name} is "{self.activation:.80}", expected an activation: {", ".join(ACTIVATIONS)}.')
        for name, value in changed_settings(self).items():
            lowest = 0 if name == "attention.window" else 1
            if isinstance(value, int) and not isinstance(value, bool) and value < lowest:
                raise InputError(f"{setting(f'model.{name}')} is {value}, expected at least {lowest}.")


def changed_settings(settings: ModelSettings) -> dict[str, Any]:
    """The settings that were given, by their names: "layers", "attention.score"."""
    values = {name: value for name, value in vars(settings).items() if name != "attention"}
    values |= {f"attention.{name}": value for name, value in vars(settings.attention).items()}
    return {name: value for name, value in values.items() if value is not None}


def config_changes(name: str, settings: ModelSettings) -> dict[str, Any]:
    """Fields of the config of a preset that these settings change. Raises InputError for what it does not have."""
    config = preset(name).config
    changes = changed_settings(settings)
    if not changes:
        return {}
    try:
        if isinstance(config, ModelConfig):
            return _transformer_changes(name, config, changes)
        return _recurrent_changes(name, config, changes)
    except InputError as error:
        flags = ", ".join(setting(f"model.{one}", value) for one, value in changes.items())
        if str(error).startswith("model."):
            raise
        raise InputError(f"{flags}: {call_or_command(str(error), error.with_flags)}") from None


def _transformer_changes(name: str, config: ModelConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(changes)
    if "cell" in values:
        raise InputError(f"{setting('model.cell')} is for recurrent networks; {name} is a Transformer. Leave it out.")
    attention = {one.partition(".")[2]: values.pop(one) for one in changes if one.startswith("attention.")}
    positions = {
        field: values.pop(one) for one, field in (("positions", "kind"), ("max_tokens", "max_tokens")) if one in values
    }
    if "width" in values and "ffn_width" not in values:
        values["ffn_width"] = config.ffn_width * values["width"] // config.width
    if "layers" in values and config.distinct_layers is not None:
        values["distinct_layers"] = min(config.distinct_layers, values["layers"])
    if attention:
        values["attention"] = replace(config.attention, **attention)
    if positions:
        values["positions"] = replace(config.positions, **positions)
    replace(config, **values)  # raises InputError for values that do not fit together
    return values


def _recurrent_changes(name: str, config: Config, changes: Mapping[str, Any]) -> dict[str, Any]:
    possible = RECURRENT if isinstance(config, RecurrentConfig) else ()
    for one in changes:
        if one not in possible:
            fix = f"It has {', '.join(possible)}." if possible else "It has none of these settings."
            raise InputError(f"{setting(f'model.{one}')} was given, but {name} has no such setting. {fix}")
    values = {one.removeprefix("attention."): value for one, value in changes.items()}
    if "width" in values and isinstance(config, RecurrentConfig):
        values["embedding_width"] = config.embedding_width * values["width"] // config.width
    replace(config, **values)
    return values


def updated(settings: Any, name: str, value: Any, typed: Any, shown: str) -> Any:
    """Nested settings with one of them changed: by a dotted name, or several by a dict."""
    known = get_type_hints(type(settings))
    first, _, rest = name.partition(".")
    if not name and isinstance(value, Mapping):
        for inner, one in value.items():
            settings = updated(settings, str(inner), one, typed, shown)
        return settings
    if not name and isinstance(value, type(settings)):
        return value
    if first not in known:
        names = [field.name for field in fields(settings)]
        what = f"{setting(shown)} is {value!r:.80}, expected some of {', '.join(names)}."
        raise InputError(what if not name else f'there is no setting "{shown}.{name}".{did_you_mean(first, names)}')
    inside = getattr(settings, first)
    if is_dataclass(inside):
        return replace(settings, **{first: updated(inside, rest, value, typed, f"{shown}.{first}")})
    return replace(settings, **{first: typed(type(settings), first, value, shown=f"{shown}.{first}")})
