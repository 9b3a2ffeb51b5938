"""A family of models: how its config.json, tensor names and heads map to ours, and its presets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.checkpoint.names import NameTable
from regard.config import AttentionConfig, Config, PositionConfig, RotaryScaling
from regard.errors import FolderError, did_you_mean

HFConfig = Mapping[str, Any]
SHARED_HEADS = ("pooled", "mix")  # heads that other heads use; they do not define a class


@dataclass(frozen=True)
class Family:
    """One family, defined by one file in `families/`. Nothing else knows the names that other libraries use."""

    name: str
    classes: Mapping[str, tuple[str, ...]]  # class in `architectures` -> heads; the first is the network without a head
    defaults: HFConfig  # fields that a config.json may leave out
    read: Callable[[HFConfig], Config]
    write: Callable[[Any], dict[str, Any]]  # from settings to fields of config.json
    prefix: str = ""  # prefix of the network's tensors if there is a head
    base: NameTable = field(default_factory=dict)
    heads: Mapping[str, NameTable] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)  # tied tensors that may be stored twice: copy -> original
    untied: Mapping[str, str] = field(default_factory=dict)  # other names of tensors if the output is not tied
    dropped: tuple[str, ...] = ()  # patterns of stored tensors that are not used
    optional: tuple[str, ...] = ()  # our tensors that may be missing; they keep their initial values
    extra_tensors: Callable[[Any], Mapping[str, Any]] | None = (
        None  # tensors written for other libraries; stored ones must have the values that we compute
    )
    model_type: str | None = None  # in config.json; the name if None
    in_transformers: bool = True  # whether transformers opens its folders
    own_names: bool = False  # whether tensors are stored under our names
    presets: Mapping[str, Config] = field(default_factory=dict)  # settings of untrained networks by name
    preset_heads: Mapping[str, int] = field(default_factory=dict)  # heads of these networks
    vocabulary_kind: str = "wordpiece"  # of the tokenizer that is trained with a preset
    special_tokens: str | None = None  # of a byte-level BPE tokenizer: those of "gpt2", "roberta" or "bert"
    title: str = ""  # name in prose and model cards, such as "GPT-2"; `name` if empty
    docs: str = ""  # remark in the table of docs/families.md
    select_by_json: Callable[[HFConfig], Family] | None = None  # the variant that a config.json describes
    select_by_config: Callable[[Any], Family] | None = None  # the variant that these settings need

    def head_names(self, heads: Iterable[str], *, tied: bool) -> NameTable:
        """The name table of the heads' tensors; that of the network is `base`."""
        theirs: dict[str, Any] = {}
        for head in heads:
            theirs |= self.heads.get(head, {})
        if tied:
            return theirs
        return {ours: self.untied.get(name, name) if isinstance(name, str) else name for ours, name in theirs.items()}

    def for_json(self, hf: HFConfig) -> Family:
        """The family, or its variant that this config.json describes."""
        return self if self.select_by_json is None else self.select_by_json(hf)

    def for_config(self, config: Config) -> Family:
        """The family, or its variant that these settings need."""
        return self if self.select_by_config is None else self.select_by_config(config)

    def docs_row(self) -> str:
        """The row of the family in docs/families.md: name, classes, presets."""
        classes = ", ".join(self.classes)
        remark = f" ({self.docs})" if self.docs else ""
        return f"| `{self.name}` | {classes}{remark} | {', '.join(self.presets)} |"

    def architecture(self, heads: Iterable[str]) -> str:
        """The class, as in `architectures`, with these heads."""
        expected = {head for head in heads if head not in SHARED_HEADS}
        for name, present in self.classes.items():
            if {head for head in present if head not in SHARED_HEADS} == expected:
                return name
        raise FolderError(
            f"the family {self.name} has no class with the heads {', '.join(sorted(expected))}; it has "
            + "; ".join(f"{name}: {', '.join(present) or 'none'}" for name, present in self.classes.items())
        )


ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}


def activation_from_hf(hf: HFConfig, key: str) -> str:
    """Our name of the activation in a config.json."""
    name = str(hf[key])
    if name not in ACTIVATIONS:
        raise FolderError(f'config.json: {key} "{name}" is not known.{did_you_mean(name, ACTIVATIONS)}')
    return ACTIVATIONS[name]


def activation_to_hf(ours: str, *, silu: str = "silu") -> str:
    """The name of our activation in a config.json."""
    return {"gelu-tanh": "gelu_new", "silu": silu}.get(ours, ours)


def require_settings(hf: HFConfig, **allowed: Any) -> None:
    """Raise FolderError for settings that our network does not implement."""
    for key, value in allowed.items():
        if key in hf and hf[key] is not None and hf[key] != value:
            raise FolderError(
                f"config.json: {key} is {hf[key]!r}, but this family is read only with {value!r}. "
                "Convert the model, or use one with that setting."
            )


def check_types(hf: HFConfig, defaults: HFConfig) -> None:
    """Raise FolderError for fields whose type differs from that of their default."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    for key, default in defaults.items():
        value = hf.get(key, default)
        if value is None and (default is None or key.endswith("_token_id")):
            continue
        kind = int if default is None else type(default)
        if kind is float:
            is_valid = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        else:
            is_valid = type(value) is kind or (default is None and type(value) is bool)
        if not is_valid:
            raise FolderError(f"config.json: {key} is {value!r}, expected {words[kind]}.")


def rotary_config(rope: HFConfig, max_tokens: int, *, local_theta: float | None = None) -> PositionConfig:
    """Our rotary positions from the rope fields of a config.json."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    scaling = None
    if kind in ("linear", "llama3", "yarn"):
        original = rope.get("original_max_position_embeddings")
        low, high = ("low_freq_factor", "high_freq_factor") if kind == "llama3" else ("beta_slow", "beta_fast")
        default = (1.0, 4.0) if kind == "llama3" else (1.0, 32.0)
        scaling = RotaryScaling(
            kind=kind,
            factor=float(rope["factor"]),
            original_length=None if kind == "linear" else int(original or max_tokens),
            low=float(rope.get(low) or default[0]),
            high=float(rope.get(high) or default[1]),
            attention_factor=rope.get("attention_factor"),
        )
        require_settings(rope, mscale=None, mscale_all_dim=None, truncate=True)
    elif kind != "default":
        raise FolderError(f'config.json: rope_type "{kind}" cannot be read; known are default, linear, llama3, yarn.')
    require_settings(rope, partial_rotary_factor=1.0)
    theta = float(rope.get("rope_theta", 10000.0))
    return PositionConfig("rotary", max_tokens=max_tokens, theta=theta, local_theta=local_theta, scaling=scaling)


def rope_parameters(positions: PositionConfig, *, theta: float | None = None) -> dict[str, Any]:
    """The rope fields of a config.json from our rotary positions."""
    scaling = positions.scaling
    rope: dict[str, Any] = {"rope_theta": theta or positions.theta, "rope_type": scaling.kind if scaling else "default"}
    if scaling is None:
        return rope
    rope["factor"] = scaling.factor
    if scaling.kind != "linear":
        low, high = ("low_freq_factor", "high_freq_factor") if scaling.kind == "llama3" else ("beta_slow", "beta_fast")
        rope |= {"original_max_position_embeddings": scaling.original_length, low: scaling.low, high: scaling.high}
    if scaling.attention_factor is not None:
        rope["attention_factor"] = scaling.attention_factor
    return rope


def encoder_attention(hf: HFConfig, heads: str = "num_attention_heads") -> AttentionConfig:
    """The attention of the BERT-like families."""
    return AttentionConfig(int(hf[heads]), dropout=float(hf["attention_probs_dropout_prob"]))
