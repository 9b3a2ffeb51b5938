"""Everything that can be set about a training, with what it is when nobody says."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from regard.errors import InputError, did_you_mean, setting

Schedule = Literal["linear", "cosine", "wsd", "sqrt", "constant"]

# What users of transformers' Trainer know things by.
OLD_NAMES = {
    "learning_rate": "lr",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "max_steps": "steps",
    "per_device_train_batch_size": "batch",
    "train_batch_size": "batch",
    "batch_size": "batch",
    "max_seq_length": "window",
    "max_length": "window",
    "doc_stride": "overlap",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
    "lr_scheduler_type": "schedule",
    "weight_decay": "decay",
    "max_grad_norm": "clip",
    "label_smoothing_factor": "smoothing",
    "label_smoothing": "smoothing",
    "save_steps": "save_every",
    "eval_steps": "eval_every",
    "early_stopping_patience": "patience",
    "gradient_checkpointing": "recompute",
    "torch_compile": "compile",
    "adam_epsilon": "eps",
    "adam_beta1": "beta1",
    "adam_beta2": "beta2",
    "logging_steps": "log_every",
}
OLD_SCHEDULES = {"inverse_sqrt": "sqrt", "warmup_stable_decay": "wsd", "constant_with_warmup": "constant"}
# Known, and with nothing to set here: what is said instead.
NOT_NEEDED = {
    "evaluation_strategy": "dev is scored once an epoch; eval_every=STEPS scores it more often",
    "eval_strategy": "dev is scored once an epoch; eval_every=STEPS scores it more often",
    "save_strategy": "the state is saved at every score; save_every=STEPS saves it more often",
    "gradient_accumulation_steps": "a step is as large as batch says, in as many parts as memory asks for",
    "per_device_eval_batch_size": "reading is batched by tokens",
    "group_by_length": "no batch has padding",
    "load_best_model_at_end": "the best weights are always kept",
    "fp16": "dtype is bf16 where the GPU has it; set dtype=fp32 to avoid it",
    "bf16": "dtype is bf16 where the GPU has it; set dtype=fp32 to avoid it",
    "padding": "no batch has padding",
    "truncation": "nothing is cut; long texts are read in windows",
    "dataloader_num_workers": "a thread keeps the device fed",
    "do_train": "train trains, and scores where there is dev data",
    "do_eval": "train trains, and scores where there is dev data",
    "metric_for_best_model": "the main score of the task is watched",
    "save_total_limit": "one state is kept, the newest",
    "report_to": "metrics.jsonl and curves.png are in the folder",
    "optim": "AdamW is used, fused where it can be",
    "use_cpu": "device=cpu trains on the CPU",
    "no_cuda": "device=cpu trains on the CPU",
    "logging_dir": "track=true writes TensorBoard events beside metrics.jsonl",
    "logging_strategy": "log_every=STEPS says how often lines are written",
    "auto_find_batch_size": "a step that does not fit is done in smaller parts",
    "eval_accumulation_steps": "scores take no more memory for more rows",
    "remove_unused_columns": "columns that are not needed are not read",
    "full_determinism": "the same seed gives the same weights on the same hardware",
    "push_to_hub": "nothing is sent anywhere; the folder can be uploaded as it is",
    "disable_tqdm": "there is a bar only where a person is looking",
}


@dataclass(frozen=True)
class Lora:
    """Small matrices beside frozen ones. Merged into them when the model is saved."""

    rank: int = 0  # 0 for none
    alpha: float = 16.0  # how much they count
    dropout: float = 0.0  # of what goes into them

    def check(self) -> None:
        """Done by Settings: raised in here, the parser of the command line would show it without the flag."""
        if self.rank < 0:
            raise InputError(f"{setting('lora.rank')} is {self.rank}, expected at least 1, or 0 for none.")
        if not 0 < self.alpha < math.inf:
            raise InputError(f"{setting('lora.alpha')} is {self.alpha:g}, expected a number above 0.")
        if not 0 <= self.dropout < 1:
            raise InputError(f"{setting('lora.dropout')} is {self.dropout:g}, expected a share from 0 to 1.")


@dataclass(frozen=True)
class Settings:
    """How to train. None means: as the task is usually trained, or chosen from the size of data and model."""

    epochs: float | None = None  # how often the data is read; fewer the more there is of it
    steps: int | None = None  # instead of epochs
    lr: float | None = None  # the highest rate; smaller for wide networks and small steps
    batch: int | None = None  # texts of a step
    batch_tokens: int | None = None  # tokens of a step, over all devices
    micro_tokens: int | None = None  # tokens in memory at once; a step is done in parts of so many
    schedule: Schedule | None = None  # how the rate goes down after the warm-up
    warmup: float | None = None  # share of all steps, or a number of steps from 1 on
    decay: float = 0.01  # of weights; never of norms and biases
    clip: float = 1.0  # longest gradient; 0 for any
    beta1: float = 0.9  # of AdamW: how long gradients are remembered
    beta2: float | None = None  # of AdamW: how long their squares are
    eps: float = 1e-6  # of AdamW, as BERT had it: far smaller ones make steps of what is only rounding
    layer_decay: float = 1.0  # rate of a layer as a share of the one above it
    freeze: tuple[str, ...] = ()  # embeddings, encoder, or numbers of layers
    lora: Lora = Lora()
    dropout: float | None = None  # of the whole network, in place of its own
    smoothing: float | None = None  # of labels
    balance: Literal["none", "weights", "sampling"] = "none"  # make rare classes count as much as common ones
    vocabularies: Literal["joint", "separate"] = "joint"  # of the two languages of a translation from nothing
    prefix: str | None = None  # before every text that is translated, where a model wants one (T5); as its folder says
    window: int | None = None  # most tokens of a sequence
    overlap: float = 0.25  # share of a window that the next one shows too
    dev_share: float = 0.1  # split off for dev where none is given; 0 for no scores
    patience: int = 0  # scores without a better one before it stops; 0 for never
    eval_every: int = 0  # steps between scores; 0 for once an epoch
    save_every: int = 0  # steps between saved states; 0 for at every score, or once an epoch where there is none
    log_every: int = 10  # steps between lines of metrics.jsonl
    spikes: int = 5  # skipped steps in a row before it stops
    seed: int = 0  # of all that is drawn: fresh weights, order, dropout, what is split off
    device: str = "auto"  # cpu, cuda or cuda:1
    dtype: Literal["auto", "fp32", "bf16"] = "auto"  # bf16 where the GPU has it
    compile: Literal["auto", "yes", "no"] = "auto"  # steps compiled as a whole, where that pays
    recompute: bool = False  # activations again in the backward pass, for less memory
    track: bool = False  # TensorBoard events too
    shard: bool = False  # weights and optimizer split over the ranks (FSDP), for what fits no single GPU

    def __post_init__(self) -> None:
        self._at_least("epochs", 0.0, above=True)
        for name in ("lr", "eps"):
            self._at_least(name, 0.0, above=True)
        for name in ("steps", "batch", "batch_tokens", "micro_tokens", "window", "log_every", "spikes"):
            self._at_least(name, 1)
        for name in ("warmup", "decay", "clip", "patience", "eval_every", "save_every", "seed", "smoothing"):
            self._at_least(name, 0)
        if self.epochs is not None and self.steps is not None:
            both = f"{setting('epochs', self.epochs)} and {setting('steps', self.steps)}"
            raise InputError(f"{both} were both given; give one of them.")
        for name in ("dev_share", "overlap", "smoothing", "dropout", "beta1", "beta2"):
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise InputError(f"{setting(name)} is {getattr(self, name):g}, expected a share from 0 to 1.")
        if not 0 < self.layer_decay <= 1:
            value = f"{setting('layer_decay')} is {self.layer_decay:g}"
            raise InputError(f"{value}, expected a share above 0, up to 1 for none.")
        for name in ("schedule", "balance", "vocabularies", "dtype", "compile"):
            _typed(type(self), name, getattr(self, name))
        self.lora.check()

    def _at_least(self, name: str, least: float, *, above: bool = False) -> None:
        value = getattr(self, name)
        if value is not None and (not least <= value < math.inf or (above and value == least)):
            bound = f"{'more than' if above else 'at least'} {least:g}"
            raise InputError(
                f"{setting(name)} is {value:g}, expected {bound if value != math.inf else 'a finite number'}."
            )

    @classmethod
    def of(cls, given: Mapping[str, Any], *, start: Settings | None = None) -> Settings:
        """Settings by name, old names of the Trainer too, dotted or nested for `lora`."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        lora = dict(vars((start or cls()).lora))
        for name, value in given.items():
            ours = _ours(name, known)
            if ours is None:
                continue
            if ours == "lora" or ours.startswith("lora."):
                lora |= _lora(ours, value)
            else:
                values[ours] = _typed(cls, ours, old_value(ours, value))
        try:
            return replace(start or cls(), **values, lora=Lora(**lora))
        except TypeError as error:
            raise InputError(f"the settings cannot be used: {error}.") from error


def old_value(name: str, value: Any) -> Any:
    """The value as it is called here, where the Trainer has another word for it."""
    known = name == "schedule" and isinstance(value, str) and value in OLD_SCHEDULES
    return OLD_SCHEDULES[value] if known else value


def _lora(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Lora):
        return dict(vars(value))
    held = {name.partition(".")[2]: value} if "." in name else {"rank": value} if isinstance(value, int) else value
    known = [field.name for field in fields(Lora)]
    if not isinstance(held, Mapping) or not set(held) <= set(known):
        raise InputError(f"{setting('lora')} is {value!r:.80}, expected its rank, or some of {', '.join(known)}.")
    return {name: _typed(Lora, name, one, shown=f"lora.{name}") for name, one in held.items()}


def _typed(settings: type, name: str, value: Any, *, shown: str | None = None) -> Any:
    """The value as its setting holds it, or words about what was expected. Yes and no may be true and false."""
    wanted = get_type_hints(settings)[name]
    kinds = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    choices = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
    if choices and not (value is None and NoneType in kinds):
        value = {True: "yes", False: "no"}[value] if isinstance(value, bool) and "yes" in choices else value
        if value not in choices:
            raise InputError(
                f'{setting(shown or name)} "{value!s:.80}" is not known.{did_you_mean(str(value), choices)}'
            )
        return value
    if get_origin(wanted) is tuple:
        given = [value] if isinstance(value, str | int) else value
        if isinstance(given, list | tuple):
            return tuple(str(one) for one in given)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return value
    if int in kinds and isinstance(value, float) and value.is_integer():
        return int(value)
    plain = tuple(kind for kind in kinds if isinstance(kind, type) and get_origin(kind) is None)
    if not isinstance(value, plain) or (isinstance(value, bool) and bool not in plain):
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        expected = next((words[kind] for kind in plain if kind in words), "a list of texts")
        raise InputError(f"{setting(shown or name)} is {value!r:.80}, expected {expected}.")
    return value


def _ours(name: str, known: set[str]) -> str | None:
    """Our name of a setting; None where it is one that regard has no need of, which is said."""
    plain = name.replace("-", "_")
    if plain in known or plain.startswith("lora."):
        return plain
    if plain in OLD_NAMES:
        warnings.warn(f'"{name}" is called "{OLD_NAMES[plain]}" here.', UserWarning, stacklevel=3)
        return OLD_NAMES[plain]
    if plain in NOT_NEEDED:
        warnings.warn(f'"{name}" is not needed: {NOT_NEEDED[plain]}.', UserWarning, stacklevel=3)
        return None
    near = difflib.get_close_matches(plain, [*known, *OLD_NAMES], n=1)
    ours = OLD_NAMES.get(near[0], near[0]) if near else None
    mend = f' Did you mean "{ours}"?' if ours else f" Choose some of: {', '.join(sorted(known))}."
    raise InputError(f'there is no setting "{name}".{mend}')
