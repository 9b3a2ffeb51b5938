"""A start that usually does well: rate, epochs and batch from the size of the data and of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from regard.config import Config
from regard.data.packing import Ints
from regard.training.settings import Settings

TEXTS = 32  # of a step, where texts are short
LEAST_STEPS = 25  # an epoch should have about as many, or the model hardly moves
LORA = 10  # times the rate: small matrices start from nothing
ROOM = (256, 16_384)  # tokens of a step


@dataclass(frozen=True)
class Size:
    """What the choice depends on."""

    sequences: int
    mean: float
    longest: int

    @classmethod
    def of(cls, lengths: Ints) -> Size:
        return cls(len(lengths), float(np.mean(lengths)), int(np.max(lengths)))


def resolved(settings: Settings, size: Size, config: Config, *, pretrained: bool, gpu: bool) -> Settings:
    """The same settings with every choice made."""
    batch_tokens = settings.batch_tokens or _batch_tokens(settings, size, gpu=gpu)
    batch_tokens = max(batch_tokens, size.longest)
    texts = min(settings.batch or batch_tokens / size.mean, size.sequences)
    epochs = settings.epochs
    if epochs is None and settings.steps is None:
        epochs = _epochs(size.sequences, pretrained=pretrained)
    share = LORA if settings.lora.rank else 1
    lr = settings.lr or _rate(config, texts, size.sequences, pretrained=pretrained) * share
    return replace(settings, epochs=epochs, lr=lr, batch_tokens=batch_tokens)


def _batch_tokens(settings: Settings, size: Size, *, gpu: bool) -> int:
    if settings.batch is not None:
        return max(int(settings.batch * size.mean * 2), size.longest)
    texts = float(TEXTS * (2 if gpu else 1))
    texts = max(8.0, min(texts, size.sequences / LEAST_STEPS))
    return int(min(max(texts * size.mean, ROOM[0]), ROOM[1]))


def _epochs(sequences: int, *, pretrained: bool) -> float:
    """Small sets are read more often."""
    for most, epochs in ((500, 8), (2_000, 6), (8_000, 5), (30_000, 4), (300_000, 3)):
        if sequences <= most:
            return epochs if pretrained else 2 * epochs
    return 2 if pretrained else 4


def _rate(config: Config, texts: float, sequences: int, *, pretrained: bool) -> float:
    """Wide networks want smaller rates, large steps larger ones (by the root), and few steps larger ones too."""
    base = (6e-5 if sequences > 10_000 else 1e-4 if sequences > 2_000 else 1.5e-4) if pretrained else 5e-4
    return float(base * (768 / config.width) ** 0.75 * min(max(texts / TEXTS, 0.25), 16) ** 0.5)
