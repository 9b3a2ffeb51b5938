"""N-gram language models as baselines of pretraining: counted at once, then scored and written like all others."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from regard.checkpoint.folder import Checkpoint
from regard.config import MAX_NGRAMS, NgramConfig
from regard.data.corpus.text_source import Stream
from regard.errors import InputError, setting
from regard.model.ngram_language import NgramNetwork, count_ngrams
from regard.text.tokenizer import Tokenizer
from regard.training.from_scratch.preset_model import with_special_token_ids
from regard.training.initial_model import InitialModel
from regard.training.settings import Settings

ORDERS = {"bigram": 2, "trigram": 3, "ngram": 5}  # presets of `pretrain`, with the words of their n-grams
VOCABULARY_PRESET = "gpt2-mini"  # a vocabulary like that of this preset is learned if none is given
USED = ("window", "dev_fraction", "seed", "device", "tensorboard", "log_to", "dropout")  # settings with an effect


def check_ngram_settings(preset: str, objective: str, settings: Settings) -> None:
    """Raise InputError for another objective, and for settings of training steps, of which there are none."""
    if objective != "causal":
        raise InputError(
            f"{setting('preset', preset)} counts which word comes next; use it with {setting('objective', 'causal')}."
        )
    plain = Settings()
    for field in fields(Settings):
        if field.name not in USED and getattr(settings, field.name) != getattr(plain, field.name):
            raise InputError(
                f"{setting(field.name)} was given, but {preset} is counted at once, without training steps. "
                "Leave it out."
            )


def ngram_language_model(preset: str, tokenizer: Tokenizer, text: Stream) -> InitialModel:
    """The model of all n-grams of a text. Raises InputError if there are too many."""
    order = ORDERS[preset]
    if text.size * order > 8 * MAX_NGRAMS:
        raise InputError(
            f"the text has {text.size:,} tokens; a {preset} model counts at most {8 * MAX_NGRAMS // order:,}. Use a "
            "part of it, or shorter n-grams."
        )
    tensors = count_ngrams(text.read(np.arange(text.size)), order, tokenizer.size)
    config = NgramConfig(tokenizer.size, order, len(tensors["counts"]))
    network = NgramNetwork(config, {"language": 0})
    network.decoder.load_state_dict(tensors)
    checkpoint = Checkpoint("ngram-language", config, network.eval(), special_ids=tokenizer.special)
    return InitialModel(with_special_token_ids(checkpoint, tokenizer), tokenizer, pretrained=True)
