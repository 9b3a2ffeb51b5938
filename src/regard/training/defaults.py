"""A start that usually does well: rate, epochs and batch from the size of the data and of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from regard.config import Config
from regard.data.batching.packing import Ints
from regard.tasks.recipe import Recipe
from regard.training.settings import Settings

TEXTS = 32  # of a step, where texts are short
LEAST_STEPS = 25  # an epoch should have about as many, or the model hardly moves
LORA = 10  # times the rate: small matrices start from nothing
ROOM = (256, 16_384)  # tokens of a step
LEAST_SHARE = 1 / 4  # of the steps of a recipe: smaller ones have the rate of this
PLAIN = Recipe()
TOLD = ("schedule", "warmup", "adam_beta2", "label_smoothing", "dropout")  # settings of a recipe that depend on no size


@dataclass(frozen=True)
class DataSize:
    """What the choice depends on."""

    sequences: int
    mean: float
    longest: int

    @classmethod
    def of(cls, lengths: Ints) -> DataSize:
        return cls(len(lengths), float(np.mean(lengths)), int(np.max(lengths)))


def fill_from_recipe(settings: Settings, recipe: Recipe = PLAIN) -> Settings:
    """The same settings; what was not told of them, and depends on no size, is that of the recipe."""
    left = {name: getattr(recipe, name) for name in TOLD if getattr(settings, name) is None}
    return replace(settings, **left)


def resolve_settings(
    settings: Settings, size: DataSize, config: Config, *, pretrained: bool, gpu: bool, recipe: Recipe = PLAIN
) -> Settings:
    """The same settings with every choice made."""
    given_warmup = settings.warmup
    settings = fill_from_recipe(settings, recipe)
    batch_tokens = settings.batch_tokens or _batch_tokens(settings, size, recipe, gpu=gpu)
    batch_tokens = max(batch_tokens, size.longest)
    texts = min(settings.batch_size or batch_tokens / size.mean, size.sequences)
    epochs = settings.epochs
    if epochs is None and settings.steps is None:
        epochs = recipe.epochs or _epochs(size.sequences, pretrained=pretrained)
    usual = _recipe_rate(recipe, texts, size) or _rate(config, texts, size.sequences, pretrained=pretrained)
    steps = settings.steps or (epochs or 0) * size.sequences / texts
    warmup = settings.warmup
    if given_warmup is None and recipe.min_warmup:
        warmup, share = _min_warmup(steps, settings.warmup or 0.0, recipe)
        usual *= share
    lr = settings.lr or usual * (LORA if settings.lora.rank else 1)
    return replace(settings, epochs=epochs, lr=lr, batch_tokens=batch_tokens, warmup=warmup)


def _min_warmup(steps: float, warmup: float, recipe: Recipe) -> tuple[float, float]:
    """A warm-up of at least the recipe's number of steps, and the share of its rate.

    Where that would be more than half of all steps, half of them is the warm-up, and the rate is lower in proportion:
    it rises no faster than with all of it.
    """
    if warmup * steps >= recipe.min_warmup:
        return warmup, 1.0
    half = max(int(steps / 2), 1)
    if half >= recipe.min_warmup:
        return float(recipe.min_warmup), 1.0
    return float(half), half / recipe.min_warmup


def chosen_settings(asked: Settings, chosen: Settings) -> list[str]:
    """What was chosen and not told, in words; of a recipe, what is unlike that of most tasks."""
    parts = {
        "lr": f"lr {chosen.lr:.2g}",
        "epochs": f"epochs {chosen.epochs:g}" if chosen.epochs else "",
        "batch_tokens": f"batch_tokens {chosen.batch_tokens:,}" if chosen.batch_tokens else "",
    }
    parts |= {
        name: f"{name} {value}" for name in TOLD if (value := getattr(chosen, name)) not in (None, getattr(PLAIN, name))
    }
    return [words for name, words in parts.items() if words and getattr(asked, name) is None]


def _batch_tokens(settings: Settings, size: DataSize, recipe: Recipe, *, gpu: bool) -> int:
    if settings.batch_size is not None:
        return max(int(settings.batch_size * size.mean * 2), size.longest)
    if recipe.tokens is not None:
        return int(max(min(size.sequences * size.mean / LEAST_STEPS, recipe.tokens), ROOM[0]))
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
    base = _base_lr(sequences, pretrained=pretrained)
    return float(base * (768 / config.width) ** 0.75 * min(max(texts / TEXTS, 0.25), 16) ** 0.5)


def _base_lr(sequences: int, *, pretrained: bool) -> float:
    """The learning rate of a network of width 768 with 32 texts per step."""
    if not pretrained:
        return 5e-4
    if sequences > 10_000:
        return 6e-5
    return 1e-4 if sequences > 2_000 else 1.5e-4


def _recipe_rate(recipe: Recipe, texts: float, size: DataSize) -> float | None:
    """By the root of the size of a step, here too."""
    if recipe.lr is None:
        return None
    if recipe.tokens is not None:
        return float(recipe.lr * min(max(texts * size.mean / recipe.tokens, LEAST_SHARE), 1) ** 0.5)
    growth = min(max(texts / TEXTS, LEAST_SHARE), recipe.batch_growth or 1.0)
    return float(recipe.lr * growth**0.5)
