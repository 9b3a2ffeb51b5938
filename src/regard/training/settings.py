"""Training settings, their defaults, and what the Trainer of transformers calls them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypedDict, Union, get_args, get_origin, get_type_hints

from regard.errors import InputError, did_you_mean, setting
from regard.training.from_scratch.model_settings import ModelSettings, updated

HeadInit = Literal["auto", "contrastive", "probe", "random", "similarity"]
Schedule = Literal["linear", "cosine", "wsd", "sqrt", "constant"]
FRACTION = "a fraction from 0 up to but not including 1"  # in messages
# Settings by the range that they are checked for; None is always allowed.
AT_LEAST_1 = (
    "steps",
    "batch_size",
    "batch_tokens",
    "micro_batch_tokens",
    "window",
    "beams",
    "log_every",
    "max_bad_steps",
    "repeats",
)
AT_LEAST_0 = (
    "warmup",
    "weight_decay",
    "max_grad_norm",
    "patience",
    "eval_every",
    "save_every",
    "seed",
    "label_smoothing",
    "context",
    "rdrop",
)
CHOICES = (*("schedule", "class_balance", "head_init", "pooling", "refit", "vocabularies", "dtype", "compile"),)
TRACKERS = ("tensorboard", "wandb", "mlflow")
FRACTIONS = (
    *("dev_fraction", "overlap", "label_smoothing", "dropout", "adam_beta1", "adam_beta2"),
    "rdrop_start",
)

# Names of transformers' Trainer and its example scripts, and what they are called here, for errors.
TRAINER_NAMES = {
    "learning_rate": "lr",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "max_steps": "steps",
    "per_device_train_batch_size": "batch_size",
    "train_batch_size": "batch_size",
    "gradient_accumulation_steps": "micro_batch_tokens",
    "auto_find_batch_size": "micro_batch_tokens",
    "max_seq_length": "window",
    "max_length": "window",
    "doc_stride": "overlap",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
    "lr_scheduler_type": "schedule",
    "label_smoothing_factor": "label_smoothing",
    "save_steps": "save_every",
    "save_strategy": "save_every",
    "eval_steps": "eval_every",
    "eval_strategy": "eval_every",
    "evaluation_strategy": "eval_every",
    "early_stopping_patience": "patience",
    "torch_compile": "compile",
    "fp16": "dtype",
    "bf16": "dtype",
    "use_cpu": "device",
    "no_cuda": "device",
    "adam_epsilon": "adam_eps",
    "logging_steps": "log_every",
    "logging_strategy": "log_every",
    "report_to": "log_to",
    "output_dir": "out",
    "overwrite_output_dir": "overwrite",
    "resume_from_checkpoint": "resume",
    "model_name": "start",
    "model_name_or_path": "start",
    "tokenizer_name": "tokenizer",
    "validation_file": "dev",
    "eval_file": "dev",
}


@dataclass(frozen=True)
class Lora:
    """LoRA (https://arxiv.org/abs/2106.09685): low-rank updates of frozen weights, merged when the model is saved."""

    rank: int = 0  # Rank of the update matrices; 0 disables LoRA.
    alpha: float = 16.0  # Scale: the update is multiplied by alpha / rank.
    dropout: float = 0.0  # Dropout on the inputs of the update matrices.

    def check(self) -> None:
        """Called by Settings: for an error in `__post_init__`, the command line would not name the flag."""
        if self.rank < 0:
            raise InputError(f"{setting('lora.rank')} is {self.rank}, expected at least 1, or 0 for none.")
        if not 0 < self.alpha < math.inf:
            raise InputError(f"{setting('lora.alpha')} is {self.alpha:g}, expected a number above 0.")
        if not 0 <= self.dropout < 1:
            raise InputError(f"{setting('lora.dropout')} is {self.dropout:g}, expected {FRACTION}.")


@dataclass(frozen=True)
class Settings:
    """Training settings. None: chosen from the task, the data and the model."""

    epochs: float | None = None  # Passes over the training data; chosen from its size if not given.
    steps: int | None = None  # Number of optimizer steps, instead of a number of epochs.
    lr: float | None = None  # Peak learning rate; chosen from the model and the batch size if not given.
    batch_size: int | None = None  # Texts per optimizer step.
    batch_tokens: int | None = None  # Tokens per optimizer step, over all devices, instead of a batch size.
    # Tokens per forward pass; gradients are accumulated over the micro-batches of a step.
    micro_batch_tokens: int | None = None
    # Learning rate after the warm-up. wsd: warm-up, stable, decay; sqrt: inverse square root.
    schedule: Schedule | None = None
    warmup: float | None = None  # Length of the warm-up; below 1: fraction of all steps; 1 or more: number of steps.
    weight_decay: float = 0.01  # AdamW weight decay; not applied to norms and biases.
    max_grad_norm: float = 1.0  # Maximum gradient norm; 0 disables clipping.
    adam_beta1: float = 0.9  # AdamW beta1, decay rate of the first moment.
    adam_beta2: float | None = None  # AdamW beta2, decay rate of the second moment.
    adam_eps: float = 1e-6  # AdamW epsilon; with much smaller values, rounding errors of the gradients change weights.
    layerwise_lr_decay: float | None = None  # Learning rate of each layer relative to the one above; 1 disables it.
    # Parts that are not trained: embeddings, encoder, layer numbers (from 0), or none; chosen for few rows on a CPU.
    freeze: tuple[str, ...] | None = None
    lora: Lora = Lora()
    # Dropout of the whole network; if not given, the model's own, or 0 for small models of pairs, short or few texts.
    dropout: float | None = None
    label_smoothing: float | None = None  # Fraction of the target probability spread evenly over all labels.
    # R-Drop: weight of the divergence between two passes with other dropout; 0 disables it.
    rdrop: float | None = None
    rdrop_start: float | None = None  # Fraction of all steps before R-Drop begins.
    # Trainings from the same initial weights, with other seeds; the model is the mean of their weights.
    repeats: int | None = None
    explainable: bool = False  # Mask random words in half of the texts, so that masking words explains the answers.
    class_balance: Literal["none", "weights"] = "none"  # Weight the loss of rare classes.
    # Before the first step on the labels: set no weights (random head), fit a linear probe as the head, train the
    # vectors and fit a probe (contrastive), or learn how similar pairs are (similarity); auto: by task and rows.
    head_init: HeadInit = "auto"
    # Vector that is classified: mean of all tokens or first token; auto: as the folder says for sentence-transformers.
    pooling: Literal["auto", "mean", "first"] = "auto"
    vocabularies: Literal["joint", "separate"] = "joint"  # One vocabulary or two, for translation from scratch.
    prefix: str | None = None  # Text put before every source text (T5); read from the folder if not given.
    beams: int = 1  # Beams that a translation model is used with; written to its folder.
    window: int | None = None  # Maximum tokens of a sequence; longer texts are split into windows.
    overlap: float = 0.25  # Fraction of a window that the next window repeats.
    # Tokens of the sentences around a sentence to tag, half on each side; 64 if documents are known; 0 disables it.
    context: int | None = None
    # Fraction of the rows for validation if no validation data is given; 0 disables it; 0.1 or less of many rows.
    dev_fraction: float | None = None
    refit: Literal["auto", "yes", "no"] = "auto"  # Train again on all rows at the end; auto: with few rows.
    patience: int = 0  # Evaluations without improvement before training stops; 0 disables early stopping.
    eval_every: int = 0  # Steps between evaluations; 0: once per epoch.
    save_every: int = 0  # Steps between checkpoints; 0: at evaluations, at most every 20 seconds.
    log_every: int = 10  # Steps between lines in metrics.jsonl.
    max_bad_steps: int = 5  # Consecutive skipped steps (loss or gradients not finite) before training stops.
    seed: int = 0  # Random seed of initial weights, order of rows, dropout and splits.
    device: str = "auto"  # Device: auto (a GPU if there is one), cpu, cuda or cuda:1.
    dtype: Literal["auto", "fp32", "bf16"] = "auto"  # Number format; auto: bf16 if the GPU supports it, else fp32.
    compile: Literal["auto", "yes", "no"] = "auto"  # Use torch.compile for the training step; auto: if it saves time.
    gradient_checkpointing: bool = False  # Recompute activations in the backward pass to save memory.
    tensorboard: bool = False  # Also write TensorBoard events.
    log_to: tuple[str, ...] = ()  # Tools to log to as well: tensorboard, wandb, mlflow.
    fsdp: bool = False  # Shard weights and optimizer state over all GPUs (FSDP2).
    model: ModelSettings = field(default_factory=ModelSettings)

    def __post_init__(self) -> None:
        self._at_least("epochs", 0.0, above=True)
        for name in ("lr", "adam_eps"):
            self._at_least(name, 0.0, above=True)
        for name in AT_LEAST_1:
            self._at_least(name, 1)
        for name in AT_LEAST_0:
            self._at_least(name, 0)
        if self.epochs is not None and self.steps is not None:
            both = f"{setting('epochs', self.epochs)} and {setting('steps', self.steps)}"
            raise InputError(f"{both} were both given; give one of them.")
        for name in FRACTIONS:
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise InputError(f"{setting(name)} is {getattr(self, name):g}, expected {FRACTION}.")
        if self.rdrop and self.dropout == 0:
            both = f"{setting('rdrop', self.rdrop)} and {setting('dropout', self.dropout)}"
            raise InputError(f"{both} were given, but R-Drop compares passes with different dropout. Leave one out.")
        if self.layerwise_lr_decay is not None and not 0 < self.layerwise_lr_decay <= 1:
            value = f"{setting('layerwise_lr_decay')} is {self.layerwise_lr_decay:g}"
            raise InputError(f"{value}, expected a fraction above 0 and at most 1; 1 disables it.")
        for name in CHOICES:
            _typed(type(self), name, getattr(self, name))
        for name in self.log_to:
            if name not in TRACKERS:
                choices = ", ".join(TRACKERS)
                raise InputError(f'{setting("log_to")} is "{name}", expected a tool to log to: {choices}.')
        self.lora.check()
        self.model.check()

    def _at_least(self, name: str, minimum: float, *, above: bool = False) -> None:
        value = getattr(self, name)
        if value is not None and (not minimum <= value < math.inf or (above and value == minimum)):
            bound = f"{'more than' if above else 'at least'} {minimum:g}"
            raise InputError(
                f"{setting(name)} is {value:g}, expected {bound if value != math.inf else 'a finite number'}."
            )

    @classmethod
    def of(cls, overrides: Mapping[str, Any], *, start: Settings | None = None) -> Settings:
        """Settings by name, nested ones as `lora.rank` or as a dict."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        lora = dict(vars((start or cls()).lora))
        model = (start or cls()).model
        for name, value in overrides.items():
            ours = _checked_name(name, known)
            if ours == "lora" or ours.startswith("lora."):
                lora |= _lora(ours, value)
            elif ours == "model" or ours.startswith("model."):
                model = updated(model, ours.partition(".")[2], value, _typed, "model")
            else:
                values[ours] = _typed(cls, ours, value)
        try:
            return replace(start or cls(), **values, lora=Lora(**lora), model=model)
        except TypeError as error:
            raise InputError(f"the settings cannot be used: {error}.") from error


class FineTuneSettings(TypedDict, total=False):
    """The fields of `Settings` as keyword arguments, without those of a network that is trained from scratch."""

    epochs: float | None
    steps: int | None
    lr: float | None
    batch_size: int | None
    batch_tokens: int | None
    micro_batch_tokens: int | None
    schedule: Schedule | None
    warmup: float | None
    weight_decay: float
    max_grad_norm: float
    adam_beta1: float
    adam_beta2: float | None
    adam_eps: float
    layerwise_lr_decay: float | None
    freeze: Sequence[str | int] | None
    lora: Lora | Mapping[str, Any] | int
    dropout: float | None
    label_smoothing: float | None
    rdrop: float | None
    rdrop_start: float | None
    repeats: int | None
    explainable: bool
    class_balance: Literal["none", "weights"]
    head_init: HeadInit
    pooling: Literal["auto", "mean", "first"]
    vocabularies: Literal["joint", "separate"]
    prefix: str | None
    beams: int
    window: int | None
    overlap: float
    context: int | None
    dev_fraction: float | None
    refit: Literal["auto", "yes", "no"]
    patience: int
    eval_every: int
    save_every: int
    log_every: int
    max_bad_steps: int
    seed: int
    device: str
    dtype: Literal["auto", "fp32", "bf16"]
    compile: Literal["auto", "yes", "no"] | bool
    gradient_checkpointing: bool
    tensorboard: bool
    log_to: Sequence[str]
    fsdp: bool


class TrainSettings(FineTuneSettings, total=False):
    """The fields of `Settings` as keyword arguments of `regard.train` and `regard.pretrain`."""

    model: ModelSettings | Mapping[str, Any]


def _lora(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Lora):
        return dict(vars(value))
    values = value
    if "." in name:
        values = {name.partition(".")[2]: value}
    elif isinstance(value, int):
        values = {"rank": value}
    known = [field.name for field in fields(Lora)]
    if not isinstance(values, Mapping) or not set(values) <= set(known):
        raise InputError(f"{setting('lora')} is {value!r:.80}, expected its rank, or some of {', '.join(known)}.")
    return {name: _typed(Lora, name, one, shown=f"lora.{name}") for name, one in values.items()}


_type_hints = cache(get_type_hints)  # which takes a millisecond


def _typed(settings: type, name: str, value: Any, *, shown: str | None = None) -> Any:
    """The value converted to the type of its setting. True and False are accepted for "yes" and "no"."""
    expected_type = _type_hints(settings)[name]
    kinds = get_args(expected_type) if get_origin(expected_type) in (Union, UnionType) else (expected_type,)
    choices = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
    if choices and not (value is None and NoneType in kinds):
        value = {True: "yes", False: "no"}[value] if isinstance(value, bool) and "yes" in choices else value
        if value not in choices:
            raise InputError(
                f'{setting(shown or name)} "{value!s:.80}" is not known.{did_you_mean(str(value), choices)}'
            )
        return value
    if any(get_origin(kind) is tuple for kind in kinds) and value is not None:
        several = [value] if isinstance(value, str | int) else value
        if isinstance(several, list | tuple):
            return tuple(str(one) for one in several)
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


def _checked_name(name: str, known: set[str]) -> str:
    """The name of a setting, with underscores; an error for an unknown one."""
    plain = name.replace("-", "_")
    if plain in known or plain.startswith(("lora.", "model.")):
        return plain
    if plain in TRAINER_NAMES:
        raise InputError(f'there is no setting "{name}"; regard calls it "{TRAINER_NAMES[plain]}".')
    near = difflib.get_close_matches(plain, [*known, *TRAINER_NAMES], n=1)
    ours = TRAINER_NAMES.get(near[0], near[0]) if near else None
    fix = f' Did you mean "{ours}"?' if ours else f" Choose some of: {', '.join(sorted(known))}."
    raise InputError(f'there is no setting "{name}".{fix}')
