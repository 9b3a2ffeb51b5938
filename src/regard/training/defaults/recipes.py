"""Default learning rate, epochs and batch size, from the size of the data and of the model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from regard.config import Config, ModelConfig
from regard.tasks.recipe import Recipe
from regard.text.flat_tokens import Ints
from regard.training.settings import Settings

TEXTS = 32  # texts per step, where texts are short
MORE_TEXTS = ((20_000, TEXTS), (50_000, 64))  # up to so many sequences, to fine-tune a small encoder; above, MOST_TEXTS
MOST_TEXTS = 128
MIN_STEPS = 25  # an epoch should have at least about this many steps
LITTLE_DATA = 2_000  # sequences up to which a random head gets a higher learning rate
FINE_TUNING = 6e-5  # learning rate of a pretrained network of width 768 with 32 texts per step
LORA = 10  # factor on the learning rate for LoRA, whose matrices start at zero
TOKEN_RANGE = (256, 16_384)  # tokens per step, minimum and maximum
MIN_FRACTION = 1 / 4  # of a recipe's step size: smaller steps get the learning rate of this
PROBE_EPOCHS = ((160, 3.5), (200, 4), (500, 8), (2_500, 6), (8_000, 5), (30_000, 4), (300_000, 3))  # up to so many rows
STATIC_EPOCHS = ((2_000, 15), (10_000, 6), (30_000, 4), (100_000, 3))
SMALL_WIDTH = 512  # up to which an encoder is fine-tuned with large steps, and pairs and short texts without dropout,
MANY_ROWS = 300  # if there are more rows than this
SHORT_TEXT = 24  # tokens, on average
PAIR_EPOCHS = ((2_500, 8), (8_000, 6))  # up to so many rows
GPU_PAIRS = (32_000, 64_000)  # that similarity is learned from on a GPU: 16 per row, at least and at most;
CPU_PAIRS = (800, 6_000)  # on a CPU three per row,
FOUR_PER_ROW = 1_200  # or four, but no more than this
SIMILARITY_ROWS = 8_000  # up to which there are fewer epochs after it,
FEW_PAIRS = 500  # and still fewer up to this number;
FIRST_PARTS = ("embeddings", "0")  # that are then not trained on a CPU, nor of few single texts, if there are
DEEP = 4  # layers or more;
REPEATS = 3  # above it, a small encoder is trained so often, and the weights are averaged;
GPU_EPOCHS = 3  # epochs of each training then, on a GPU
CPU_EPOCHS = 1.67  # and on a CPU, where all together should not take longer than one training of five epochs
MANY_SHORT_TEXTS = (10_000, 30_000, 100_000)  # of two classes: from the first number to the second,
SOME_REPEATS, MANY_REPEATS = (2, 2), (3, 1)  # so many trainings of so many epochs; from there to the third
TAGGING = 1.8e-4  # learning rate of the head for tags at width 768, for steps of 16 to 64 sentences,
TAG_LR_DECAY = 0.8  # and of each layer as a fraction of the layer above
MANY_SENTENCES = 8_000  # above which 64 are in a step: a GPU is then faster
TAG_EPOCHS = ((500, 9), (2_000, 7), (8_000, 6), (30_000, 5))  # up to so many sentences
FEW_CLASSES = 4  # up to which contrastive training comes before the probe,
FEW_ROWS = 125  # if there are fewer rows per class than this
VERY_FEW_ROWS = 12  # per class, below which contrastive training takes fewer steps
REPEATED_ROWS = 24  # of each of two classes, from which it is repeated on a GPU
REFIT_ROWS = 200  # up to which a training from a linear probe is short, and repeated with the validation rows too;
SHORT_CONTRASTIVE = (  # rows up to which a CPU takes so many contrastive steps, and their learning rate
    (32, 12, 1.5e-4),
    (64, 18, 1e-4),
    (128, 25, 1e-4),
    (REFIT_ROWS, 35, 7e-5),
)
GPU_REFIT_ROWS = 10_000  # on a GPU, any fine-tuning of a small encoder on single texts is repeated, up to this
MANY_CLASSES = 16  # above which a head starts from a probe, however many rows there are
RDROP = 1.0  # weight of R-Drop on a GPU, for tags, and for single texts that are not short,
RDROP_ROWS = (1_000, 10_000, 30_000)  # from the first to the last number of rows; for texts above the second,
RDROP_START = 2 / 3  # only in the last third of the steps, in one epoch less
PLAIN = Recipe()
RECIPE_SETTINGS = (  # independent of sizes
    *("schedule", "warmup", "adam_beta2", "label_smoothing", "rdrop", "rdrop_start", "dropout", "repeats"),
    "freeze",
)
MODEL_SETTINGS = ("rdrop", "rdrop_start", "repeats", "freeze")  # of these, the ones that may depend on the model


@dataclass(frozen=True)
class DataSize:
    """The number of sequences of the training data, and their mean and maximum length."""

    sequences: int
    mean: float
    max_length: int

    @classmethod
    def of(cls, lengths: Ints, *, rows: int | None = None) -> DataSize:
        """rows: the number of texts, where several share a sequence; they are what counts as sequences then."""
        count = rows or len(lengths)
        return cls(count, float(np.sum(lengths)) / count, int(np.max(lengths)))


@dataclass(frozen=True)
class SimilarityTraining:
    """How a network learns similarity: on how many pairs, how many of them per step, at which learning rate."""

    pairs: int
    per_step: int
    lr: float


@dataclass(frozen=True)
class ContrastiveTraining:
    """How the vectors of texts with the same label are made similar, before a linear probe is fitted."""

    steps: int
    texts: int  # per step
    lr: float
    repeats: int = 1  # trainings with other random numbers, whose weights are averaged
    once: bool = False  # without the validation rows; with them, only the probe is fitted again


def fill_from_recipe(settings: Settings, recipe: Recipe = PLAIN, *, model_known: bool = True) -> Settings:
    """The same settings, with the recipe's values for those that were not given and do not depend on sizes.

    model_known: false leaves settings open that may depend on the model.
    """
    if settings.dropout == 0:
        recipe = replace(recipe, rdrop=0.0, rdrop_start=0.0)  # R-Drop compares passes with different dropout
    if settings.rdrop is not None:
        recipe = replace(recipe, rdrop_start=0.0)  # as the user asks for it
    names = [name for name in RECIPE_SETTINGS if model_known or name not in MODEL_SETTINGS]
    missing = {name: getattr(recipe, name) for name in names if getattr(settings, name) is None}
    return replace(settings, **missing)


def resolve_settings(
    settings: Settings, size: DataSize, config: Config, *, pretrained: bool, recipe: Recipe = PLAIN
) -> Settings:
    """The same settings, with a value for every setting that was not given."""
    given_warmup = settings.warmup
    settings = fill_from_recipe(settings, recipe)
    if settings.rdrop and recipe.rdrop_lr is not None:
        recipe = replace(recipe, lr=recipe.rdrop_lr)
    max_texts = texts_per_step(size.sequences, config, recipe) if pretrained else TEXTS
    batch_tokens = settings.batch_tokens or _batch_tokens(settings, size, recipe, max_texts)
    batch_tokens = max(batch_tokens, size.max_length)
    texts = min(settings.batch_size or batch_tokens / size.mean, size.sequences)
    epochs = settings.epochs
    if epochs is None and settings.steps is None:
        epochs = recipe.epochs or _epochs(size.sequences, pretrained=pretrained)
    default_lr = _recipe_lr(recipe, texts, size) or _default_lr(config, texts, size.sequences, pretrained=pretrained)
    steps = settings.steps or (epochs or 0) * size.sequences / texts
    warmup = settings.warmup
    if given_warmup is None and recipe.min_warmup:
        warmup, fraction = _min_warmup(steps, settings.warmup or 0.0, recipe)
        default_lr *= fraction
    lr = settings.lr or default_lr * (LORA if settings.lora.rank else 1)
    decay = recipe.layerwise_lr_decay if settings.layerwise_lr_decay is None else settings.layerwise_lr_decay
    return replace(settings, epochs=epochs, lr=lr, batch_tokens=batch_tokens, warmup=warmup, layerwise_lr_decay=decay)


def _min_warmup(steps: float, warmup: float, recipe: Recipe) -> tuple[float, float]:
    """A warm-up of at least the recipe's number of steps, and the fraction of its learning rate.

    If that would be more than half of all steps, the warm-up is half of them, and the peak learning rate is lowered in
    proportion, so that it rises at the same speed.
    """
    if warmup * steps >= recipe.min_warmup:
        return warmup, 1.0
    half = max(int(steps / 2), 1)
    if half >= recipe.min_warmup:
        return float(recipe.min_warmup), 1.0
    return float(half), half / recipe.min_warmup


def default_refit(config: Config, rows: int, *, probe: bool, gpu: bool) -> bool:
    """Whether a classifier of single texts is by default trained again on all rows, validation rows too.

    It is where this takes seconds; `benchmarks/defaults.md` has what it gains.
    """
    limit = GPU_REFIT_ROWS if gpu and config.width <= SMALL_WIDTH else 0
    return rows <= max(limit, REFIT_ROWS if probe else 0)


def probe_recipe(config: Config, rows: int) -> Recipe:
    """Fine-tuning that starts from a linear probe: the head is good already, so the learning rate is never higher.

    Little data is read more often. Very little is read less often, in smaller steps, since it is trained on twice. Both
    were chosen by the study in benchmarks/defaults.md.
    """
    epochs = next((value for limit, value in PROBE_EPOCHS if rows <= limit), 2)
    return _fine_tuning_recipe(config, epochs=epochs, few_rows=rows <= REFIT_ROWS)


def contrastive_recipe(config: Config, rows: int, *, gpu: bool) -> Recipe | None:
    """Contrastive training of few texts on a CPU, without dropout and without training the first layer.

    This takes a quarter less time, and the scores are the same (see benchmarks/defaults.md). None where it was not
    measured, or does not pay.
    """
    if gpu or rows > REFIT_ROWS or not _is_small_and_deep(config):
        return None
    return replace(probe_recipe(config, rows), dropout=0.0, freeze=FIRST_PARTS)


def default_head_init(classes: int, rows: int) -> str:
    """What a new head of a sentence encoder starts from, as measured in benchmarks/defaults.md.

    A random head is best with many rows per class. With few, a linear probe is better; with few classes too, the
    vectors are first trained to be similar for texts with the same label. Many classes always start from a probe.
    """
    if classes > MANY_CLASSES:
        return "probe"
    if rows >= FEW_ROWS * classes:
        return "random"
    return "contrastive" if classes <= FEW_CLASSES else "probe"


def classifier_recipe(config: Config, rows: int, *, mean_length: float, gpu: bool) -> Recipe | None:
    """R-Drop for single texts with a random head, on a GPU; None where it was not measured, or does not pay.

    mean_length: the mean number of tokens of a text. R-Drop takes a second pass in each step. Of many rows, which take
    longest, an epoch less with R-Drop in the last third of the steps takes as long as without, and is as good as R-Drop
    in all steps (see benchmarks/defaults.md).
    """
    low, some, many = RDROP_ROWS
    if not gpu or config.width > SMALL_WIDTH or mean_length <= SHORT_TEXT or not low <= rows <= many:
        return None
    if rows <= some:
        return Recipe(rdrop=RDROP)
    return Recipe(rdrop=RDROP, rdrop_start=RDROP_START, epochs=_epochs(rows, pretrained=True) - 1)


def pair_recipe(rows: int) -> Recipe:
    """Text pairs are learned more slowly than single texts."""
    return Recipe(epochs=next((value for limit, value in PAIR_EPOCHS if rows <= limit), None))


def short_text_recipe(config: Config, rows: int, *, mean_length: float) -> Recipe | None:
    """The mean of several trainings on many short texts of two classes, with as many epochs together as one would have.

    None where it was not measured, or does not pay.
    """
    low, some, many = MANY_SHORT_TEXTS
    if config.width > SMALL_WIDTH or mean_length > SHORT_TEXT or not low < rows <= many:
        return None
    repeats, epochs = SOME_REPEATS if rows <= some else MANY_REPEATS
    return Recipe(epochs=epochs, repeats=repeats)


def pair_repeats(config: Config, rows: int) -> int:
    """How often a network is trained on text pairs after training on similarity, to average the weights.

    Several short trainings are better than a long one (see benchmarks/defaults.md).
    """
    return REPEATS if config.width <= SMALL_WIDTH and FEW_PAIRS < rows <= SIMILARITY_ROWS else 1


def similarity_recipe(config: Config, rows: int, *, repeats: int = 1, gpu: bool = False) -> Recipe:
    """Text pairs after training on similarity, which leaves less to learn."""
    if rows > SIMILARITY_ROWS:
        return replace(pair_recipe(rows), repeats=repeats)
    epochs: float = 4 if rows <= FEW_PAIRS else 5
    if repeats > 1:
        epochs = GPU_EPOCHS if gpu else CPU_EPOCHS
    few_rows = rows <= FEW_PAIRS and not gpu
    recipe = _fine_tuning_recipe(config, epochs=epochs, few_rows=few_rows)
    return replace(recipe, repeats=repeats, freeze=FIRST_PARTS if few_rows and _is_small_and_deep(config) else ())


def _is_small_and_deep(config: Config) -> bool:
    """Whether the first layer is a small part of a small encoder: not if layers share their weights."""
    if not isinstance(config, ModelConfig) or config.width > SMALL_WIDTH:
        return False
    return min(config.layers, config.distinct_layers or config.layers) >= DEEP


def similarity_training(config: Config, rows: int, *, gpu: bool) -> SimilarityTraining:
    """How long a network learns similarity before it is trained on text pairs: longer on a GPU, where it takes seconds.

    On a CPU, both together take about as long as training on the labels alone would, except with few rows.
    """
    lr = _fine_tuning_lr(config)
    if gpu:
        pairs = min(max(16 * rows, GPU_PAIRS[0]), GPU_PAIRS[1])
        per_step = pairs // 500
        return SimilarityTraining(pairs, per_step, lr=lr * max(per_step / TEXTS, 1.0) ** 0.5)
    pairs = min(max(3 * rows, min(4 * rows, FOUR_PER_ROW), CPU_PAIRS[0]), CPU_PAIRS[1])
    return SimilarityTraining(pairs, max(pairs // 200, 4), lr=lr * (1.5 if config.width <= SMALL_WIDTH else 1.0))


def contrastive_training(rows: int, classes: int, *, gpu: bool) -> ContrastiveTraining:
    """With very few rows of each class, the vectors stay closer to the pretrained ones.

    With two classes and enough rows, the mean of several faster trainings is better. On a GPU they take seconds. On a
    CPU, few rows take fewer and larger steps, once.
    """
    if rows < VERY_FEW_ROWS * classes:
        steps, lr = (25, 4e-5) if gpu else (12, 8e-5)
        return ContrastiveTraining(steps, TEXTS, lr, once=True)
    if gpu and classes == 2 and rows >= REPEATED_ROWS * classes:
        return ContrastiveTraining(steps=50, texts=TEXTS, lr=1e-4, repeats=3)
    if not gpu and rows <= REFIT_ROWS:
        steps, lr = next((steps, lr) for limit, steps, lr in SHORT_CONTRASTIVE if rows <= limit)
        return ContrastiveTraining(steps, TEXTS, lr, once=True)
    return ContrastiveTraining(steps=50, texts=TEXTS, lr=5e-5)


def tag_recipe(config: Config, rows: int, *, joined: bool, gpu: bool = False) -> Recipe:
    """Tags with layer-wise learning rates: the head and the upper layers learn fast, the lower ones change little.

    joined: sentences share sequences, which leaves time for more epochs. gpu: with R-Drop, where it was measured: steps
    of sentences are so short that a second pass takes little time there.
    """
    epochs = next((value for limit, value in TAG_EPOCHS if rows <= limit), None) if joined else None
    lr = TAGGING * (768 / config.width) ** 0.75
    texts = 64 if rows > MANY_SENTENCES else Recipe.min_texts
    small, (low, _, many) = config.width <= SMALL_WIDTH, RDROP_ROWS
    rdrop = RDROP if gpu and small and low <= rows <= many else 0.0
    recipe = Recipe(lr=lr, scales_lr=False, epochs=epochs, layerwise_lr_decay=TAG_LR_DECAY, min_texts=texts)
    return replace(recipe, rdrop=rdrop)


def static_recipe(rows: int) -> Recipe:
    """Static embeddings with a small network: large steps, since a step costs much more than a text."""
    epochs = next((value for limit, value in STATIC_EPOCHS if rows <= limit), 3)
    return Recipe(lr=6e-3, epochs=epochs, batch_growth=1.0, min_texts=max(16, min(256, rows // 60)))


def fine_tuning_dropout(config: Config, rows: int, *, mean_length: float | None) -> float | None:
    """The dropout to fine-tune a classifier with; None for the model's own.

    mean_length: the mean number of tokens of single texts; None for text pairs. A small encoder does not overfit in the
    few epochs of fine-tuning. Without dropout it is about a point better on pairs, and as good or better on short
    texts, but worse on long ones (see benchmarks/defaults.md). With few rows it was not measured.
    """
    long_texts = mean_length is not None and mean_length > SHORT_TEXT
    return 0.0 if config.width <= SMALL_WIDTH and rows > MANY_ROWS and not long_texts else None


def without_steps(chosen: Settings, user_settings: Settings) -> Settings:
    """The settings of a network that is ready before the first step: for steps, only what the user gave."""
    names = ("epochs", "lr", "batch_tokens")
    return replace(chosen, **{name: getattr(user_settings, name) for name in names})


def chosen_settings(user_settings: Settings, chosen: Settings, *, names: Collection[str] | None = None) -> list[str]:
    """The settings that the user did not give, as text; of a recipe only those that differ from the defaults.

    names: only these.
    """
    parts = {
        "lr": f"lr {chosen.lr:.2g}",
        "epochs": f"epochs {chosen.epochs:g}" if chosen.epochs else "",
        "batch_tokens": f"batch_tokens {chosen.batch_tokens:,}"
        if chosen.batch_tokens and not chosen.batch_size
        else "",
    }
    parts |= {
        name: f"{name} {' '.join(value) if isinstance(value, tuple) else value}"
        for name in (*RECIPE_SETTINGS, "layerwise_lr_decay")
        if (value := getattr(chosen, name)) not in (None, getattr(PLAIN, name))
    }
    listed = {name: words for name, words in parts.items() if words and (names is None or name in names)}
    return [words for name, words in listed.items() if getattr(user_settings, name) is None]


def texts_per_step(sequences: int, config: Config, recipe: Recipe) -> int:
    """The number of texts in a step of fine-tuning, unless the data is so small that steps are smaller.

    A small encoder learns large data sets as well with large steps, and several times as fast on a GPU (see
    benchmarks/defaults.md). Not measured for large encoders and for heads that start from a linear probe.
    """
    if config.width > SMALL_WIDTH or recipe.lr is not None:
        return TEXTS
    return next((texts for limit, texts in MORE_TEXTS if sequences <= limit), MOST_TEXTS)


def _fine_tuning_recipe(config: Config, *, epochs: float, few_rows: bool) -> Recipe:
    """Steps of 32 texts, with few rows of 16, at the same learning rate."""
    texts = TEXTS // 2 if few_rows else TEXTS
    lr = _fine_tuning_lr(config) * (TEXTS / texts) ** 0.5  # so that it is the same for steps of this size
    return Recipe(lr=lr, epochs=epochs, batch_growth=1.0, min_texts=texts)


def _fine_tuning_lr(config: Config) -> float:
    """For 32 texts per step."""
    return float(FINE_TUNING * (768 / config.width) ** 0.75)


def _batch_tokens(settings: Settings, size: DataSize, recipe: Recipe, max_texts: int) -> int:
    if settings.batch_size is not None:
        return max(int(settings.batch_size * size.mean * 2), size.max_length)
    if recipe.tokens is not None:
        return int(max(min(size.sequences * size.mean / MIN_STEPS, recipe.tokens), TOKEN_RANGE[0]))
    texts = max(recipe.min_texts, min(max_texts, size.sequences / MIN_STEPS))
    return int(min(max(texts * size.mean, TOKEN_RANGE[0]), TOKEN_RANGE[1]))


def _epochs(sequences: int, *, pretrained: bool) -> float:
    """More passes over small data sets."""
    for limit, epochs in ((500, 8), (2_000, 6), (8_000, 5), (30_000, 4), (300_000, 3)):
        if sequences <= limit:
            return epochs if pretrained else 2 * epochs
    return 2 if pretrained else 4


def _default_lr(config: Config, texts: float, sequences: int, *, pretrained: bool) -> float:
    """Lower learning rates for wide networks, higher ones for large steps (by the square root) and little data."""
    base, narrow = _base_lr(sequences, pretrained=pretrained), 768 / config.width
    return float(base * (narrow**0.75 if pretrained else narrow) * min(max(texts / TEXTS, 0.25), 16) ** 0.5)


def _base_lr(sequences: int, *, pretrained: bool) -> float:
    """The learning rate of a network of width 768 with 32 texts per step."""
    if not pretrained:
        return 1.2e-4
    return FINE_TUNING if sequences > LITTLE_DATA else 1.7 * FINE_TUNING


def _recipe_lr(recipe: Recipe, texts: float, size: DataSize) -> float | None:
    """The recipe's learning rate, scaled by the square root of the step size unless it is for steps of any size."""
    if recipe.lr is None or not recipe.scales_lr:
        return recipe.lr
    if recipe.tokens is not None:
        return float(recipe.lr * min(max(texts * size.mean / recipe.tokens, MIN_FRACTION), 1) ** 0.5)
    growth = min(max(texts / TEXTS, MIN_FRACTION), recipe.batch_growth or 1.0)
    return float(recipe.lr * growth**0.5)
