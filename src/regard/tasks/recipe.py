"""Default training settings of tasks, for what the user leaves open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from regard.config import Config, ModelConfig, RecurrentConfig

STEP = 8192  # tokens per step of a translation model
HIGHEST = 5e-3  # maximum learning rate, for narrow networks
DROPOUT = ((100_000, 0.3), (1_000_000, 0.2))  # up to so many pairs; fewer pairs are overfitted sooner
EPOCHS = ((2_000, 60), (10_000, 40), (50_000, 30), (300_000, 15), (2_000_000, 8))
POST_NORM_DEPTH = 5  # layers of a post-norm network that train at the full learning rate
WARMUP_PER_LAYER = 25  # steps
RDROP = 1.0  # weight of R-Drop for translation on a GPU,
RDROP_PAIRS = 100_000  # up to so many pairs


@dataclass(frozen=True)
class Recipe:
    """None means: chosen from the size of the data and of the network."""

    schedule: str = "linear"
    warmup: float = 0.1
    adam_beta2: float = 0.999
    label_smoothing: float = 0.0
    rdrop: float = 0.0
    rdrop_start: float = 0.0  # fraction of all steps before R-Drop begins
    repeats: int = 1  # trainings whose weights are averaged
    dropout: float | None = None  # the network's own when None
    lr: float | None = None  # for steps of `tokens` tokens; smaller steps get a smaller learning rate
    rdrop_lr: float | None = None  # the same with R-Drop, by default or on request; `lr` when None
    scales_lr: bool = True  # whether small steps get a lower learning rate
    tokens: int | None = None
    epochs: float | None = None
    batch_growth: float | None = (
        None  # if `tokens` is None, lr is for 32 texts and grows with the square root, up to this factor
    )
    freeze: tuple[str, ...] = ()  # parts of the network that are not trained
    layerwise_lr_decay: float = 1.0  # learning rate of each layer as a fraction of the layer above
    min_texts: int = 8  # per step, if `tokens` is None
    min_warmup: int = 0  # steps, at most half of all; counts where `warmup` is not set by the user


def translation_recipe(config: Config, pairs: int, *, gpu: bool = False) -> Recipe:
    """Translation from scratch, as Vaswani et al. (2017), whose peak learning rate at width 512 was 7e-4.

    Networks with norms before each sublayer learn at higher rates, and better with R-Drop (benchmarks/RESULTS.md). It
    doubles the time of a step, so it is used on a GPU only. Recurrent networks get a lower learning rate with linear
    decay, and more dropout.
    """
    dropout = next((value for limit, value in DROPOUT if pairs <= limit), 0.1)
    epochs = next((value for limit, value in EPOCHS if pairs <= limit), 4)
    common = Recipe(adam_beta2=0.98, label_smoothing=0.1, tokens=STEP, epochs=epochs)
    if isinstance(config, RecurrentConfig):
        lr = min(1e-3 * (512 / config.width) ** 0.5, HIGHEST)
        return replace(common, warmup=0.05, dropout=round(dropout + 0.1, 1), lr=lr)
    narrow = (256 / config.width) ** 1.5
    if not isinstance(config, ModelConfig) or not config.norm_first:
        return replace(common, schedule="sqrt", dropout=dropout, lr=min(2e-3 * narrow, HIGHEST))
    rdrop = RDROP if gpu and pairs <= RDROP_PAIRS else 0.0
    lr, rdrop_lr = (min(rate * narrow, HIGHEST) for rate in (3e-3, 4e-3))
    return replace(common, schedule="cosine", dropout=dropout, lr=lr, rdrop_lr=rdrop_lr, rdrop=rdrop)


def pretraining_recipe(config: Config) -> Recipe:
    """Language models from scratch; benchmarks/rates.py measures these choices.

    Post-norm networks (BERT) never get below the loss of a unigram model when the learning rate rises too fast: their
    learning rate decreases with depth and does not grow with the batch, and their warm-up grows with depth.
    """
    if not isinstance(config, ModelConfig):
        return Recipe()
    lr = 5e-4 * (768 / config.width) ** 0.75
    if config.norm_first:
        return Recipe(lr=lr, batch_growth=2.0)
    depth = config.layers + config.decoder_layers
    return Recipe(lr=lr * min(1.0, POST_NORM_DEPTH / depth), batch_growth=1.0, min_warmup=WARMUP_PER_LAYER * depth)
