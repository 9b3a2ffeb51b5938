"""Decoding settings of a trained model."""

from __future__ import annotations

from dataclasses import replace

from regard.checkpoint.families import family_for
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.generation import FILE
from regard.checkpoint.sidecars import generation_config
from regard.checkpoint.write_folder import build_config_json


def with_beams(checkpoint: Checkpoint, beams: int) -> Checkpoint:
    """The checkpoint with this number of beams in generation_config.json, which transformers reads too."""
    config = build_config_json(checkpoint, family_for(checkpoint.family, checkpoint.config))
    content = {
        **generation_config(config, checkpoint.network.heads)[FILE],
        **checkpoint.companion_files.get(FILE, {}),
        "num_beams": beams,
    }
    content.pop("_from_model_config", None)  # else transformers may read the settings from config.json
    return replace(checkpoint, companion_files={**checkpoint.companion_files, FILE: content})
