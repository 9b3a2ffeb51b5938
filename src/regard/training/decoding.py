"""Decoding settings of a trained model: its number of beams, and the length penalty that suits them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from regard.checkpoint.families import family_for
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.generation import FILE, read_generation
from regard.checkpoint.sidecars import generation_config
from regard.checkpoint.write_folder import build_config_json
from regard.generate.generator import TextGenerator
from regard.model.bag import BagNetwork
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.tasks.length_penalty import best_length_penalty
from regard.training.initial_model import InitialModel
from regard.training.job import TrainingJob
from regard.training.validation import RecordValidation


class TunedDecoding(NamedTuple):
    """The length penalty that was chosen, and the main score for each one that was tried."""

    beams: int
    length_penalty: float
    scores: dict[float, float]

    def __str__(self) -> str:
        best, plain = self.scores[self.length_penalty], self.scores[1.0]
        words = (
            f"length penalty {self.length_penalty:g} was chosen for {self.beams} beams: it scores {best:.2f} on the "
            "validation rows"
        )
        return words if self.length_penalty == 1 else f"{words}, and 1 scores {plain:.2f}"


def tune_decoding(job: TrainingJob, model: InitialModel, validation: object) -> TunedDecoding | None:
    """Choose the length penalty for the beams of the settings; None if there is one beam, or no row to choose on."""
    if job.settings.beams == 1 or not isinstance(validation, RecordValidation):
        return None
    assert not isinstance(job.network, BidirectionalNetwork | BagNetwork)
    special, defaults = read_generation(model.checkpoint)
    device = next(job.network.parameters()).device
    generator = TextGenerator(job.network, special, device, model.tokenizer, defaults)
    scores = validation.length_penalties(job, generator)
    return TunedDecoding(job.settings.beams, best_length_penalty(scores), scores) if scores else None


def with_decoding(checkpoint: Checkpoint, beams: int, length_penalty: float) -> Checkpoint:
    """The checkpoint with these settings in generation_config.json, which transformers reads too."""
    config = build_config_json(checkpoint, family_for(checkpoint.family, checkpoint.config))
    content = {
        **generation_config(config, checkpoint.network.heads)[FILE],
        **checkpoint.companion_files.get(FILE, {}),
        "num_beams": beams,
        "length_penalty": length_penalty,
    }
    content.pop("_from_model_config", None)  # else transformers may read the settings from config.json
    return replace(checkpoint, companion_files={**checkpoint.companion_files, FILE: content})
