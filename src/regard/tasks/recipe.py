"""How a task is usually trained: what holds where its user says nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from regard.config import Config, RecurrentConfig

STEP = 8192  # tokens of a step that translates
HIGHEST = 5e-3  # rate, however narrow the network
DROPOUT = ((100_000, 0.3), (1_000_000, 0.2))  # up to so many pairs; the fewer, the sooner they are known by heart
EPOCHS = ((2_000, 60), (10_000, 40), (50_000, 30), (300_000, 15), (2_000_000, 8))
POST_NORM_DEPTH = 5  # layers of a post-norm network that take the full rate
WARMUP_PER_LAYER = 25  # steps


@dataclass(frozen=True)
class Recipe:
    """None means: chosen from the size of the data and of the network."""

    schedule: str = "linear"
    warmup: float = 0.1
    adam_beta2: float = 0.999
    label_smoothing: float = 0.0
    dropout: float | None = None  # the network's own when None
    lr: float | None = None  # of steps of so many `tokens`; smaller steps take smaller rates
    tokens: int | None = None
    epochs: float | None = None
    batch_growth: float | None = None  # lr is for 32 texts, where `tokens` is None; grows with its root
    least_warmup: int = 0  # steps, at most half of all; counts where `warmup` is not set by the user


def translation_recipe(config: Config, pairs: int) -> Recipe:
    """Translation from nothing: as Vaswani et al. (2017), whose rate at a width of 512 was 7e-4 at its highest.

    Recurrent networks take a lower rate that falls to nothing, and more dropout.
    """
    share = next((share for most, share in DROPOUT if pairs <= most), 0.1)
    epochs = next((epochs for most, epochs in EPOCHS if pairs <= most), 4)
    common = Recipe(adam_beta2=0.98, label_smoothing=0.1, tokens=STEP, epochs=epochs)
    if isinstance(config, RecurrentConfig):
        lr = min(1e-3 * (512 / config.width) ** 0.5, HIGHEST)
        return replace(common, warmup=0.05, dropout=round(share + 0.1, 1), lr=lr)
    return replace(common, schedule="sqrt", dropout=share, lr=min(2e-3 * (256 / config.width) ** 1.5, HIGHEST))


def pretraining_recipe(config: Config) -> Recipe:
    """Language models from scratch; benchmarks/rates.py measures these choices.

    Post-norm networks (BERT) stay at the loss of single word counts for good when the rate rises too fast: they take a
    rate that falls with depth, never more for larger steps, and a warm-up of a number of steps that grows with depth.
    """
    if isinstance(config, RecurrentConfig):
        return Recipe()
    lr = 5e-4 * (768 / config.width) ** 0.75
    if config.norm_first:
        return Recipe(lr=lr, batch_growth=2.0)
    depth = config.layers + config.decoder_layers
    return Recipe(lr=lr * min(1.0, POST_NORM_DEPTH / depth), batch_growth=1.0, least_warmup=WARMUP_PER_LAYER * depth)
