"""The preprocessing of a model: its tokenizer, its maximum length, and the prefix and start token of its folder."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.write_folder import build_config_json
from regard.data.batching.preprocessing import Preprocessing
from regard.errors import FolderError
from regard.text.tokenizer import Tokenizer


def preprocessing_of(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    *,
    window: int | None = None,
    overlap: float = 0.25,
    prefix: str | None = None,
) -> Preprocessing:
    """The preprocessing of a model, for any task; `prefix` replaces that of its folder."""
    fields = config_json(checkpoint)
    start = fields.get("decoder_start_token_id")
    vocabulary = checkpoint.config.output_vocabulary
    if type(start) is int and checkpoint.config.kind == "encoder-decoder" and not 0 <= start < vocabulary:
        raise FolderError(f"config.json: decoder_start_token_id is {start}, expected an id from 0 to {vocabulary - 1}.")
    return Preprocessing(
        tokenizer,
        checkpoint.config,
        window=window,
        overlap=overlap,
        start=start if type(start) is int else None,
        prefix=default_prefix(fields) if prefix is None else prefix,
    )


def default_prefix(fields: Mapping[str, Any]) -> str:
    """The prefix of texts to translate: "prefix" of config.json, or that of its first translation task (T5)."""
    own = fields.get("prefix")
    if isinstance(own, str):
        return own
    prefixes = _translation_prefixes(fields.get("task_specific_params"))
    if len(prefixes) > 1:
        choices = ", ".join(f'"{prefix}"' for prefix in prefixes)
        warnings.warn(
            f"this model has {len(prefixes)} translation tasks, each with a prefix: {choices}. The first is used; give "
            "another one as prefix.",
            UserWarning,
            stacklevel=2,
        )
    return next(iter(prefixes), "")


def _translation_prefixes(tasks: object) -> list[str]:
    if not isinstance(tasks, Mapping):
        return []
    settings = [values for name, values in tasks.items() if name.startswith("translation")]
    prefixes = [values.get("prefix") for values in settings if isinstance(values, Mapping)]
    return [prefix for prefix in prefixes if isinstance(prefix, str)]


def config_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """The content of config.json as it would be written now."""
    return build_config_json(checkpoint, family_for(checkpoint.family, checkpoint.config))
