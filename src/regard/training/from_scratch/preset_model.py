"""A randomly initialized network of a preset, for a vocabulary and a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from regard.baselines import BASELINES
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.reading import config_json
from regard.checkpoint.source import from_preset
from regard.config import Config
from regard.data.batching.preprocessing import Preprocessing
from regard.errors import InputError, setting
from regard.tasks.task import Task
from regard.tasks.translate import special_frame, start_token
from regard.text.tokenizer import TARGET_FOLDER, Tokenizer
from regard.training.from_scratch.model_settings import ModelSettings, changed_settings, config_changes
from regard.training.from_scratch.vocabulary import check_two_vocabularies


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
        check_two_vocabularies(name)
        sizes["target_vocabulary"] = tokenizer.target.size
    checkpoint = from_preset(name, heads=task.heads, seed=seed, **sizes)
    return with_special_token_ids(replace(checkpoint, special_ids=tokenizer.output_tokenizer.special), tokenizer)


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
