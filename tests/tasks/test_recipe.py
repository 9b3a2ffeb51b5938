"""Default training settings: the formulas, by hand."""

from __future__ import annotations

import pytest

from regard.checkpoint.source import from_preset
from regard.config import Config
from regard.tasks.recipe import Recipe, pretraining_recipe, translation_recipe


def config(name: str) -> Config:
    return from_preset(name, weights=False).config


def test_translation_is_that_of_vaswani() -> None:
    recipe = translation_recipe(config("transformer-base"), 1_000_000_000)
    assert (recipe.schedule, recipe.warmup, recipe.adam_beta2, recipe.label_smoothing) == ("sqrt", 0.1, 0.98, 0.1)
    assert recipe.tokens == 8192
    assert recipe.lr == pytest.approx(2e-3 * 0.5**1.5)  # width 512; 7.07e-4
    assert (recipe.dropout, recipe.epochs) == (0.1, 4)


def test_norms_first_allow_higher_rates_and_a_gpu_allows_r_drop() -> None:
    small = config("transformer-small")
    on_cpu, on_gpu = (translation_recipe(small, 29_000, gpu=gpu) for gpu in (False, True))
    assert (on_cpu.schedule, on_cpu.rdrop, on_cpu.lr) == ("cosine", 0.0, 3e-3)
    assert (on_gpu.schedule, on_gpu.rdrop, on_gpu.rdrop_lr) == ("cosine", 1.0, 4e-3)
    assert on_gpu.epochs == on_cpu.epochs == 30
    assert translation_recipe(small, 100_001, gpu=True).rdrop == 0.0
    assert translation_recipe(config("transformer-base"), 29_000, gpu=True).rdrop == 0.0


@pytest.mark.parametrize(
    ("pairs", "dropout", "epochs"),
    [
        *[(1, 0.3, 60), (2_000, 0.3, 60), (2_001, 0.3, 40), (100_000, 0.3, 15), (100_001, 0.2, 15)],
        *[(1_000_000, 0.2, 8), (1_000_001, 0.1, 8), (2_000_000, 0.1, 8), (2_000_001, 0.1, 4)],
    ],
)
def test_more_pairs_get_less_dropout_and_fewer_epochs(pairs: int, dropout: float, epochs: int) -> None:
    recipe = translation_recipe(config("transformer-small"), pairs)
    assert (recipe.dropout, recipe.epochs) == (dropout, epochs)
    recurrent = translation_recipe(config("gru-additive"), pairs)
    assert (recurrent.dropout, recurrent.epochs) == (pytest.approx(dropout + 0.1), epochs)


def test_recurrent_translation_decays_linearly() -> None:
    recipe = translation_recipe(config("gru-additive"), 1000)
    assert (recipe.schedule, recipe.warmup) == ("linear", 0.05)
    assert recipe.lr == pytest.approx(1e-3)  # width 512


def test_the_learning_rate_of_narrow_networks_is_limited() -> None:
    assert translation_recipe(config("tiny-transformer"), 1000).lr == 5e-3
    assert translation_recipe(config("tiny-gru"), 1000).lr == pytest.approx(min(5e-3, 1e-3 * (512 / 32) ** 0.5))


@pytest.mark.parametrize(
    ("name", "lr", "batch_growth", "min_warmup"),
    [
        ("gpt2", 5e-4, 2.0, 0),  # pre-norm, width 768
        ("bert-base-uncased", 5e-4 * 5 / 12, 1.0, 300),  # post-norm, 12 layers
        ("bert-tiny", 5e-4 * 6**0.75, 1.0, 50),  # post-norm, 2 layers of width 128
    ],
)
def test_pretraining_by_depth_and_width(name: str, lr: float, batch_growth: float, min_warmup: int) -> None:
    recipe = pretraining_recipe(config(name))
    assert recipe.lr == pytest.approx(lr)
    assert (recipe.batch_growth, recipe.min_warmup) == (batch_growth, min_warmup)


def test_recurrent_pretraining_is_the_default() -> None:
    assert pretraining_recipe(config("tiny-lstm-language")) == Recipe()
