"""The network that a training starts from, and its tokenizer."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from regard.baselines import BASELINES, Baseline, check_task
from regard.baselines.ngram import Report, build_ngram
from regard.baselines.static import build_static
from regard.baselines.tagger import build_tagger
from regard.checkpoint.families import FAMILIES, PRESETS, family_for
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.generation import FILE as GENERATION
from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.reading import config_json
from regard.checkpoint.source import find_folder, from_preset
from regard.config import Config
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import Record
from regard.errors import InputError, setting, shorten, suggest
from regard.model.attention import Attention
from regard.model.mean_layer import append_mean_layer, can_average, has_plain_pooler, set_identity_pooler
from regard.model.network import Network
from regard.tasks.classify import Classify
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.tasks.translate import special_frame, start_token
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import TARGET_FOLDER, Tokenizer
from regard.text.vocabularies.common import VocabularyTooSmall
from regard.training.defaults import default_head_init
from regard.training.from_scratch.model_settings import ModelSettings, changed_settings, config_changes
from regard.training.settings import Settings

EXAMPLES = "T5, BART, Marian"
MIN_VOCABULARY = 1000
BASELINE_SETTINGS = ("seed", "device", "dev_fraction", "refit", "class_balance", "pooling", "tensorboard")
REASONS = {  # why a baseline that is fitted at once does not take a setting, where it is not the lack of steps
    "context": "reads each sentence alone",
    "explainable": "masks no words: it has no network, and its weights show what counts for each n-gram or number",
    "dropout": "has no network with dropout",
    "label_smoothing": "is a linear model, which is fitted to the labels as they are",
}
TWO_VOCABULARY_FAMILIES = ("marian", "transformer", "recurrent")  # families whose folders can hold two vocabularies


class InitialModel(NamedTuple):
    """The model a training starts from.

    `pretrained` says that its weights are not randomly initialized, `head_init` what a new classification head starts
    from, `pooling` which vector it reads.
    """

    checkpoint: Checkpoint
    tokenizer: Tokenizer
    pretrained: bool
    head_init: str = "random"
    pooling: str = "first"

    @property
    def probe(self) -> bool:
        """Whether the head will be a linear probe, with or without contrastive training before."""
        return self.head_init != "random"


def initial_model(
    task: Task,
    *,
    start: str | Path | None,
    preset: str | None,
    tokenizer: str | Path | Tokenizer | None,
    texts: Iterable[str],
    targets: Iterable[str] | None = None,
    seed: int,
    dropout: float | None = None,
    prefix: str | None = None,
    bpe: bool = False,
    head_init: str = "auto",
    pooling: str = "auto",
    rows: int = 0,
    model: ModelSettings | None = None,
) -> InitialModel:
    """A network with the heads of the task, and its tokenizer.

    For a preset without a tokenizer, one is trained on the texts, at most of the preset's vocabulary size, and another
    one from `targets` if these have a separate vocabulary; with `bpe` it is a BPE vocabulary. `prefix` is stored in
    config.json. The caller's random state is not preserved: new heads are initialized from `seed`. `head_init` and
    `pooling`: see `Settings`; "auto" depends on the number of `rows`. `model`: what differs from the preset.
    """
    torch.manual_seed(seed)
    _check_start(task, start, preset)
    _check_head_settings(task, preset, head_init, pooling)
    if preset is not None:
        changes = config_changes(preset, model or ModelSettings())
        _check_network(task, preset, from_preset(preset, weights=False, **changes))
        loaded = (
            open_tokenizer(tokenizer) if tokenizer is not None else learn_tokenizer(preset, texts, targets, bpe=bpe)
        )
        checkpoint = build_from_preset(
            task, preset, loaded, seed=seed, separate_vocabularies=targets is not None, changes=changes
        )
    else:
        folder = find_folder(start or "minilm")
        _check_own_tokenizer(folder, tokenizer, targets)
        _check_network(task, folder, read_folder(folder, weights=False))
        checkpoint = read_folder(folder, heads=task.heads)
        loaded = open_tokenizer(tokenizer or folder)
    head_init = _head_init(task, checkpoint, head_init, rows)
    pooling = _pooling(checkpoint, pooling)
    checkpoint = _with_pooling(checkpoint, pooling, probe=head_init != "random")
    if dropout is not None:
        set_dropout(checkpoint.network, dropout)
    return InitialModel(_for_task(checkpoint, task, prefix), loaded, not checkpoint.untrained, head_init, pooling)


def check_preset(name: object) -> None:
    """Raise InputError for a name that is neither a preset nor a baseline; it names the most similar ones."""
    if name is None or (isinstance(name, str) and (name in PRESETS or name in BASELINES)):
        return
    if name == "minilm" or name in PUBLISHED:
        fix = f" It is a pretrained model: give it as {setting('start', str(name))}."
    else:
        fix = suggest(str(name), [*BASELINES, *PRESETS]) or f" Baselines: {', '.join(BASELINES)}. Presets: bert-mini, …"
    raise InputError(f'{setting("preset")} is "{shorten(str(name), 80)}", expected a preset or a baseline.{fix}')


def baseline_model(
    name: str, task: Task, records: Sequence[Record], *, start: str | Path | None, seed: int, report: Report
) -> InitialModel:
    """The network and the tokenizer of a baseline, before it is fitted or trained."""
    torch.manual_seed(seed)
    if name == "static":
        checkpoint, tokenizer = build_static(task, records, start=start or "minilm", report=report)
    elif isinstance(task, Tag):
        checkpoint, tokenizer = build_tagger(task, records)
    else:
        assert isinstance(task, Classify)
        checkpoint, tokenizer = build_ngram(task, records, report)
    return InitialModel(_for_task(checkpoint, task, None), tokenizer, pretrained=name == "static")


def check_baseline(
    chosen: Baseline,
    task: str,
    settings: Settings,
    *,
    start: str | Path | None,
    tokenizer: str | Path | None,
) -> None:
    """Raise InputError for a task that a baseline cannot do, and for what would have no effect on it."""
    check_task(chosen.name, task)
    if start is not None and not chosen.takes_start:
        raise InputError(
            f"{setting('start', str(start))} was given, but the baseline {chosen.name} learns from the training data "
            "alone. Leave it out."
        )
    if tokenizer is not None:
        raise InputError(f"{setting('tokenizer')} was given, but the baseline {chosen.name} has its own. Leave it out.")
    if settings.class_balance == "sampling":
        raise InputError(
            f"{setting('class_balance', 'sampling')} is not possible for a baseline; "
            f"use {setting('class_balance', 'weights')}."
        )
    if not chosen.fitted:
        return
    plain = Settings()
    names = [field.name for field in fields(Settings) if getattr(settings, field.name) != getattr(plain, field.name)]
    for name in names:
        if name not in BASELINE_SETTINGS:
            reason = REASONS.get(name, "is fitted at once, without training steps")
            raise InputError(f"{setting(name)} was given, but the baseline {chosen.name} {reason}. Leave it out.")


def _check_start(task: Task, start: str | Path | None, preset: str | None) -> None:
    """Raise InputError if both `start` and `preset` were given, or none where the task needs one."""
    if start is not None and preset is not None:
        both = f"{setting('start', str(start))} and {setting('preset', preset)}"
        raise InputError(f"{both} were both given; give one of them.")
    if start is None and preset is None and task.network_kind is not None:
        raise InputError(
            f"no network for {task.name} was named. Name a folder to start from ({EXAMPLES}) or a preset to train from "
            "scratch: transformer-small, gru-additive, …"
        )


def _check_head_settings(task: Task, preset: str | None, head_init: str, pooling: str) -> None:
    """Raise InputError for settings of a classification head where there is none, or no vectors to probe."""
    values = {"head_init": head_init, "pooling": pooling}
    names = [setting(name, value) for name, value in values.items() if value != "auto"]
    if names and task.probe == "never":
        raise InputError(
            f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} given, but the task is {task.name}; only "
            "classify and pair take it. Leave it out."
        )
    if preset is not None and (head_init in ("probe", "contrastive") or pooling == "mean"):
        raise InputError(
            f"{names[0]} was given, but {setting('preset', preset)} has random weights, whose vectors say nothing yet. "
            f"Leave it out, or name a pretrained model with {setting('start')}."
        )


def _head_init(task: Task, checkpoint: Checkpoint, head_init: str, rows: int) -> str:
    """What the head starts from: as requested; by default, sentence encoders with a new head do not start at random."""
    if head_init == "contrastive" and not (isinstance(task, Classify) and task.kind == "single"):
        raise InputError(
            f"{setting('head_init', 'contrastive')} needs one label per text, since it makes the vectors of texts with "
            f"the same label similar. Use {setting('head_init', 'probe')}."
        )
    if head_init != "auto":
        return head_init
    if not isinstance(task, Classify) or task.probe != "default":
        return "random"
    if checkpoint.pooling not in ("mean", "first") or not has_new_head(checkpoint):
        return "random"
    return default_head_init(len(task.names), rows) if task.kind == "single" else "probe"


def has_new_head(checkpoint: Checkpoint) -> bool:
    """Whether the classification head is not one that was trained before."""
    return any(name.startswith("heads.sequence.") for name in checkpoint.new_tensors)


def _pooling(checkpoint: Checkpoint, pooling: str) -> str:
    """Which vector a classification head reads: that of the first token, or the mean."""
    if pooling == "auto":
        mean = checkpoint.pooling == "mean" and can_average(checkpoint.config) and has_new_head(checkpoint)
        return "mean" if mean else "first"
    return pooling


def _with_pooling(checkpoint: Checkpoint, pooling: str, *, probe: bool) -> Checkpoint:
    """The checkpoint with a layer that averages all tokens if the mean is classified; see `regard.model.mean_layer`."""
    if pooling == "mean" and not can_average(checkpoint.config):
        raise InputError(
            f"{setting('pooling', 'mean')} is for encoders with post-norm layers, such as BERT and RoBERTa, "
            f"not for models of the family {checkpoint.family}. Leave it out."
        )
    if pooling == "mean" and not has_new_head(checkpoint):
        raise InputError(
            f"{setting('pooling', 'mean')} is for a new classification head, but this model has a trained one, which "
            "reads the first token. Leave it out."
        )
    network = checkpoint.network
    if pooling == "mean":
        append_mean_layer(network)
    if pooling == "mean" or (probe and checkpoint.pooling == "first" and has_plain_pooler(checkpoint.config)):
        set_identity_pooler(network)
    return replace(checkpoint, config=network.config)


def _check_own_tokenizer(folder: Path, tokenizer: str | Path | Tokenizer | None, targets: Iterable[str] | None) -> None:
    """A pretrained model keeps its tokenizer and vocabulary."""
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        raise InputError(f"{folder} has its own tokenizer; leave {setting('tokenizer')} out, or name a preset.")
    if targets is not None:
        raise InputError(
            f"{folder} has its vocabulary already; leave {setting('vocabularies')} out, or name a preset to train "
            "from scratch."
        )


def _for_task(checkpoint: Checkpoint, task: Task, prefix: str | None) -> Checkpoint:
    """The checkpoint with the task's fields of config.json. It is not marked as untrained, since it will be trained."""
    fields: dict[str, Any] = {}
    if task.problem_type:
        fields["problem_type"] = task.problem_type
    if prefix is not None:
        fields["prefix"] = prefix
    return replace(
        checkpoint,
        untrained=False,
        labels=task.labels,
        companion_files=_kept_files(checkpoint.companion_files, task),
        hf_config={**checkpoint.hf_config, **fields},
    )


def _kept_files(files: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Small files of a pretrained model that hold for the task too: its pooling, or how it generates text."""
    if task.keeps_pooling:
        return dict(files)
    return {name: content for name, content in files.items() if name == GENERATION and "language" in task.model_heads}


HEADS = {
    "masked": "masked-token head",
    "next": "next-sentence head",
    "language": "language-model head",
    "sides": "bidirectional language-model head",
    "pooled": "pooler",
    "sequence": "classification head",
    "token": "tagging head",
    "span": "answer head",
}


def new_heads(checkpoint: Checkpoint) -> list[str]:
    """The names of heads that the pretrained model did not have; they are randomly initialized."""
    names = dict.fromkeys(name.split(".")[1] for name in checkpoint.new_tensors if name.startswith("heads."))
    return [HEADS.get(name, f"{name} head") for name in names]


def build_from_preset(
    task: Task,
    name: str,
    tokenizer: Tokenizer,
    *,
    seed: int,
    separate_vocabularies: bool,
    changes: Mapping[str, Any] | None = None,
) -> Checkpoint:
    """A randomly initialized network for this tokenizer, or for the two of a translation model."""
    sizes: dict[str, Any] = {**(changes or {}), "vocabulary": tokenizer.size}
    if separate_vocabularies and tokenizer.target is None:
        raise InputError(
            f"separate vocabularies were requested, but the tokenizer has none for the other language "
            f"({TARGET_FOLDER}). Leave {setting('tokenizer')} out to train both, or name a folder with both."
        )
    if tokenizer.target is not None:
        _check_two_vocabularies(name)
        sizes["target_vocabulary"] = tokenizer.target.size
    checkpoint = from_preset(name, heads=task.heads, seed=seed, **sizes)
    return with_special_token_ids(replace(checkpoint, special_ids=tokenizer.output_tokenizer.special), tokenizer)


def _check_two_vocabularies(name: str) -> None:
    """Raise InputError if folders of the family cannot store two vocabularies."""
    family = from_preset(name, weights=False).family
    if family not in TWO_VOCABULARY_FAMILIES:
        raise InputError(
            f"folders of the family {family} hold one vocabulary for both languages. Use a preset of the families "
            f"{', '.join(TWO_VOCABULARY_FAMILIES)} (transformer-small, gru-additive, …), or leave "
            f"{setting('vocabularies')} out."
        )


def preset_config(preset: str | None, model: ModelSettings | None = None) -> Config | None:
    """The config of a network that is trained from scratch; None for fine-tuning."""
    if preset is None:
        return None
    return from_preset(preset, weights=False, **config_changes(preset, model or ModelSettings())).config


def check_model_settings(preset: str | None, model: ModelSettings) -> None:
    """Raise InputError if settings of a network trained from scratch have no effect, or do not fit the preset."""
    if preset is not None and preset not in BASELINES:
        config_changes(preset, model)
        return
    what = "the network to start from is trained already" if preset is None else f"{preset} is a baseline"
    for name in changed_settings(model):
        raise InputError(
            f"{setting(f'model.{name}')} was given, but {what} and cannot be changed. Train a network from scratch "
            f"with {setting('preset', 'bert-mini')}, or leave it out."
        )


def _check_network(task: Task, name: str | Path, checkpoint: Checkpoint) -> None:
    """Raise InputError if the network cannot do the task, before a tokenizer is trained."""
    if task.network_kind is not None and checkpoint.config.kind != task.network_kind:
        raise InputError(
            f"{task.name} needs a network of kind {task.network_kind}, but {name} is of kind "
            f"{checkpoint.config.kind}. Use one that is ({EXAMPLES}), or a preset such as transformer-small."
        )
    available = {head for heads in family_for(checkpoint.family, checkpoint.config).classes.values() for head in heads}
    if not available.issuperset(task.heads):
        raise InputError(
            f"{task.name} needs a {' and a '.join(task.heads)} head, but models of the family {checkpoint.family} "
            f"({name}) have none here. Start from an encoder such as minilm, or name a preset such as bert-mini."
        )


def with_special_token_ids(checkpoint: Checkpoint, tokenizer: Tokenizer) -> Checkpoint:
    """The checkpoint with the special token ids of its vocabulary in config.json, for networks that generate."""
    if checkpoint.config.kind == "encoder":
        return checkpoint
    fields = config_json(checkpoint)
    if checkpoint.config.kind == "decoder":
        return replace(checkpoint, hf_config=fields | {"bos_token_id": tokenizer.bos, "eos_token_id": tokenizer.eos})
    output = tokenizer.output_tokenizer
    start = start_token(Preprocessing(tokenizer, checkpoint.config))
    end = special_frame(output)[1][-1]
    ids = {
        "bos_token_id": output.bos,
        "eos_token_id": end,
        "forced_eos_token_id": end,
        "pad_token_id": start if output.pad is None else output.pad,
        "decoder_start_token_id": start,
    }
    return replace(checkpoint, hf_config=fields | {name: number for name, number in ids.items() if name in fields})


def open_tokenizer(tokenizer: str | Path | Tokenizer) -> Tokenizer:
    return tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer.load(tokenizer)


def learn_tokenizer(
    name: str, texts: Iterable[str], targets: Iterable[str] | None = None, *, bpe: bool = False
) -> Tokenizer:
    """Train a tokenizer for a preset, and a second one if `targets` are given."""
    if targets is not None:
        _check_two_vocabularies(name)
    tokenizer = _train_tokenizer(name, texts, bpe=bpe)
    tokenizer.target = None if targets is None else _train_tokenizer(name, targets, bpe=bpe)
    return tokenizer


def _train_tokenizer(name: str, texts: Iterable[str], *, bpe: bool) -> Tokenizer:
    vocabulary = vocabulary_of(name)
    if bpe and vocabulary.kind != "bpe":
        vocabulary = VocabularySpec("bpe", max(vocabulary.size, MIN_VOCABULARY), "t5")
    with vocabulary_errors(name):
        return train_tokenizer_from_texts(texts, **vocabulary._asdict())


@contextlib.contextmanager
def vocabulary_errors(name: str) -> Iterator[None]:
    """Ignore warnings about a vocabulary below the preset's size; name the preset in the error if it is too small."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the text gives")
            yield
    except VocabularyTooSmall as error:
        raise InputError(
            f'the vocabulary of preset "{name}" is too small for the characters of this text, which need '
            f"{error.needed} tokens at least. Use a larger preset, or your own vocabulary: regard tokenizer FILE "
            "--size N --out DIR, and then --tokenizer DIR."
        ) from error


class VocabularySpec(NamedTuple):
    """The kind and size of the vocabulary of a preset, and the model whose special tokens it has."""

    kind: str
    size: int
    special_tokens: str | None = None


def vocabulary_of(name: str) -> VocabularySpec:
    """The vocabulary that is trained for a preset; masked language models get one with a mask token."""
    shape: Any = from_preset(name, weights=False)
    size: int = shape.config.vocabulary
    family = FAMILIES[shape.family]
    if family.vocabulary_kind == "bpe":
        size = max(size, MIN_VOCABULARY)  # a byte-level vocabulary has all 256 bytes
    return VocabularySpec(family.vocabulary_kind, size, family.special_tokens)


def set_dropout(network: Network, dropout: float) -> None:
    """Set the dropout of the whole network, except in attention without dropout."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        elif isinstance(module, Attention):
            module.dropout = dropout if module.dropout else 0.0
        elif isinstance(module, nn.RNNBase) and module.num_layers > 1:
            module.dropout = dropout  # between recurrent layers only
