"""Help of commands with many flags: the flags in groups with titles.

tyro shows the fields of a nested dataclass in a box of their own. The dataclass that is built here is nested by group
and only used for help; the names of the flags are those of the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, is_dataclass, make_dataclass
from typing import Annotated, Any, NoReturn, get_args, get_origin

import tyro
from tyro.conf import OmitArgPrefixes, Positional, Suppress, arg
from tyro.constructors import (
    MISSING_NONPROP,
    ConstructorRegistry,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from regard.training.from_scratch.model_settings import ModelSettings
from regard.training.settings import Lora

# Flags by the title of their group, for all commands. A flag without a group is listed first, with --help.
GROUPS: dict[str, tuple[str, ...]] = {
    "Data": (
        *("task", "dev", "dev_fraction", "refit", "format", "columns", "encoding", "labels"),
        *("skip_bad", "store"),
        *("window", "overlap", "context", "prefix", "mask_rate", "mask_unit"),
    ),
    "Model": (
        *("start", "preset", "tokenizer", "vocabularies", "objective", "head_init", "pooling", "dropout", "freeze"),
    ),
    "Network from scratch": (
        *("model.layers", "model.decoder_layers", "model.width", "model.ffn_width", "model.positions"),
        *("model.max_tokens", "model.activation", "model.norm", "model.norm_first", "model.cell"),
        *("model.attention.heads", "model.attention.kv_heads", "model.attention.head_width", "model.attention.score"),
        *("model.attention.select", "model.attention.window"),
    ),
    "LoRA": ("lora.rank", "lora.alpha", "lora.dropout"),
    "Optimization": (
        *("lr", "batch_size", "batch_tokens", "weight_decay", "max_grad_norm", "adam_beta1", "adam_beta2", "adam_eps"),
        *("layerwise_lr_decay", "label_smoothing", "rdrop", "rdrop_start", "average", "explainable"),
        *("class_balance", "seed", "repeats"),
    ),
    "Schedule and stopping": (*("epochs", "steps", "schedule", "warmup", "eval_every", "patience", "max_bad_steps"),),
    "Speed and memory": ("device", "dtype", "compile", "micro_batch_tokens", "gradient_checkpointing", "fsdp"),
    "Selection": ("folds", "search", "time"),
    "Output": (
        *("out", "resume", "overwrite", "beams", "save_every", "log_every", "tensorboard", "log_to", "json"),
        *("explain_defaults", "print_config"),
    ),
}
DESCRIPTIONS = {"LoRA": Lora.__doc__, "Network from scratch": ModelSettings.__doc__}
POSITIONAL = get_args(Positional[str])[1]  # markers that the types add
SUPPRESS = get_args(Suppress[str])[1]
OMIT_PREFIXES = get_args(OmitArgPrefixes[str])[1]


def exit_with_help(command: type, **options: Any) -> NoReturn:
    """Print the help of a command with its flags in groups, and exit. `options` are those of `tyro.cli`."""
    tyro.cli(grouped_help(command), args=["--help"], **options)
    raise SystemExit(0)


def grouped_help(command: type) -> type:
    """A dataclass with the flags of a command, one nested dataclass for each group that has some of them."""
    flags = dict(_flags(command))
    in_groups = {name for names in GROUPS.values() for name in names}
    fields = [_field(name, flag) for name, flag in flags.items() if name not in in_groups]
    for number, (title, names) in enumerate(GROUPS.items()):
        inside = [_field(name, flags[name]) for name in names if name in flags]
        if inside:
            group: Any = make_dataclass(f"Group{number}", inside, kw_only=True, namespace={"__doc__": ""})
            box = arg(name=title, help=DESCRIPTIONS.get(title))
            fields.append((f"group{number}", Annotated[group, OMIT_PREFIXES, box], field()))
    return make_dataclass("Help", fields, kw_only=True)


def _flags(command: type, prefix: str = "") -> Iterator[tuple[str, StructFieldSpec]]:
    """The name of every argument that the help shows, with its type, default and help line."""
    info = StructTypeInfo.make(command, MISSING_NONPROP, in_union_context=False)
    spec = ConstructorRegistry.get_struct_spec(info)
    assert isinstance(spec, StructConstructorSpec)
    for one in spec.fields:
        kind, *metadata = get_args(one.type) if get_origin(one.type) is Annotated else (one.type,)
        if is_dataclass(kind):
            assert isinstance(kind, type)
            name = next((extra.name for extra in metadata if getattr(extra, "name", None) is not None), one.name)
            yield from _flags(kind, f"{prefix}{name}." if name else prefix)
        elif SUPPRESS not in metadata:
            yield f"{prefix}{one.name}", one


def _field(name: str, flag: StructFieldSpec) -> tuple[str, Any, Any]:
    """A field of a dataclass for this flag."""
    text = flag.helptext() if callable(flag.helptext) else flag.helptext
    default = field() if flag.default is MISSING_NONPROP else field(default=flag.default)
    help_line = arg(name=name, help=text)
    kind, *metadata = get_args(flag.type) if get_origin(flag.type) is Annotated else (flag.type,)
    if POSITIONAL in metadata:
        help_line = arg(help=text)
    return name.replace(".", "_"), Annotated[kind, help_line, *metadata], default
