"""What a model's texts are read with: its tokenizer, its places, and what its folder says of writing."""

from __future__ import annotations

from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.folder import Checkpoint, foreign_config
from regard.tasks.task import Reading
from regard.text.tokenizer import Tokenizer


def reading_of(
    checkpoint: Checkpoint, tokenizer: Tokenizer, *, window: int | None = None, overlap: float = 0.25
) -> Reading:
    """The reading of a model, ready for any task."""
    said = config_json(checkpoint)
    start, prefix = said.get("decoder_start_token_id"), said.get("prefix")
    return Reading(
        tokenizer,
        checkpoint.config,
        window=window,
        overlap=overlap,
        start=start if type(start) is int else None,
        prefix=prefix if isinstance(prefix, str) else "",
    )


def config_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """config.json as it would be written now."""
    return foreign_config(checkpoint, family_for(checkpoint.family, checkpoint.config))
