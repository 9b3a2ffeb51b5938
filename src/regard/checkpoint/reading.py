"""What a model's texts are read with: its tokenizer, its places, and what its folder says of writing."""

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
    """The reading of a model, ready for any task; `prefix` in place of its own."""
    said = config_json(checkpoint)
    start = said.get("decoder_start_token_id")
    words = checkpoint.config.output_vocabulary
    if type(start) is int and checkpoint.config.kind == "encoder-decoder" and not 0 <= start < words:
        raise FolderError(f"config.json: decoder_start_token_id is {start}, expected an id from 0 to {words - 1}.")
    return Preprocessing(
        tokenizer,
        checkpoint.config,
        window=window,
        overlap=overlap,
        start=start if type(start) is int else None,
        prefix=prefix_of(said) if prefix is None else prefix,
    )


def prefix_of(said: Mapping[str, Any]) -> str:
    """What a model wants before a text to translate: its own "prefix", or that of the one translation it names (T5)."""
    own, named = said.get("prefix"), said.get("task_specific_params")
    if isinstance(own, str):
        return own
    ways = {
        name: how["prefix"]
        for name, how in (named.items() if isinstance(named, Mapping) else ())
        if name.startswith("translation") and isinstance(how, Mapping) and isinstance(how.get("prefix"), str)
    }
    if len(ways) > 1:
        every = ", ".join(f'"{one}"' for one in ways.values())
        warnings.warn(
            f"this model translates in {len(ways)} ways, told apart by a prefix: {every}. The first is used; name "
            "another as prefix.",
            UserWarning,
            stacklevel=2,
        )
    return next(iter(ways.values()), "")


def config_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """config.json as it would be written now."""
    return build_config_json(checkpoint, family_for(checkpoint.family, checkpoint.config))
