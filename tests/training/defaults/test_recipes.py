"""What is chosen where nothing is said, and that what is said always wins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from regard.checkpoint.source import from_preset
from regard.config import ModelConfig
from regard.tasks import TASKS
from regard.tasks.recipe import Recipe, pretraining_recipe
from regard.training.defaults.recipes import (
    PLAIN,
    DataSize,
    chosen_settings,
    classifier_recipe,
    contrastive_recipe,
    contrastive_training,
    default_head_init,
    fill_from_recipe,
    fine_tuning_dropout,
    pair_recipe,
    pair_repeats,
    probe_recipe,
    resolve_settings,
    short_text_recipe,
    similarity_recipe,
    similarity_training,
    tag_recipe,
)
from regard.training.engine.schedule import warmup_steps
from regard.training.settings import Settings

MULTI30K = DataSize(29_000, 16.0, 60)
WAYS = ((1, False), (3, False), (3, True))  # how often a network is trained, and whether on a GPU


def chosen(name: str, size: DataSize = MULTI30K, *, gpu: bool = False, **overrides: Any) -> Settings:
    config = from_preset(name, weights=False).config
    recipe = TASKS["translate"].recipe(config, size.sequences, gpu=gpu)
    return resolve_settings(Settings.of(overrides), size, config, pretrained=False, recipe=recipe)


def test_transformers_translate_as_in_2017() -> None:
    result = chosen("transformer-base")
    assert (result.schedule, result.warmup, result.adam_beta2, result.label_smoothing) == ("sqrt", 0.1, 0.98, 0.1)
    assert (result.dropout, result.epochs, result.batch_tokens) == (0.3, 30, 8192)
    assert result.lr == pytest.approx(512**-0.5 * 4000**-0.5, rel=0.02)


def test_norms_first_are_trained_with_a_higher_rate() -> None:
    result = chosen("transformer-small")
    assert (result.schedule, result.warmup, result.adam_beta2, result.label_smoothing) == ("cosine", 0.1, 0.98, 0.1)
    assert (result.dropout, result.epochs, result.batch_tokens, result.rdrop) == (0.3, 30, 8192, 0.0)
    assert result.lr == pytest.approx(3e-3)


def test_the_rate_follows_the_r_drop_that_is_used() -> None:
    asked = chosen("transformer-small", rdrop=2.5)
    assert (asked.rdrop, asked.lr) == (2.5, pytest.approx(4e-3))
    assert chosen("transformer-small", rdrop=2.5, lr=1e-3).lr == 1e-3
    assert chosen("transformer-small", gpu=True).lr == pytest.approx(4e-3)
    assert chosen("transformer-small", gpu=True, rdrop=0.0).lr == pytest.approx(3e-3)
    assert chosen("transformer-base", rdrop=1.0).lr == chosen("transformer-base").lr


def test_recurrent_networks_have_another_recipe() -> None:
    result = chosen("gru-additive")
    assert (result.schedule, result.warmup, result.dropout, result.label_smoothing) == ("linear", 0.05, 0.4, 0.1)
    assert result.lr == pytest.approx(1e-3)


def test_more_pairs_less_dropout_and_fewer_epochs() -> None:
    sizes = [DataSize(pairs, 16.0, 60) for pairs in (300, 30_000, 500_000, 5_000_000)]
    results = [chosen("transformer-small", size) for size in sizes]
    assert [one.dropout for one in results] == [0.3, 0.3, 0.2, 0.1]
    epochs = [one.epochs or 0 for one in results]
    assert epochs == sorted(set(epochs), reverse=True)
    assert (results[0].batch_tokens or 0) < (results[1].batch_tokens or 0)
    assert (results[0].lr or 0) < (results[1].lr or 0)


def test_settings_of_the_user_override_the_defaults() -> None:
    overrides: dict[str, Any] = {
        "schedule": "linear",
        "warmup": 0.0,
        "adam_beta2": 0.999,
        "label_smoothing": 0.0,
        "dropout": 0.0,
    }
    overrides |= {"lr": 1e-4, "epochs": 2, "batch_tokens": 1000}
    result = chosen("transformer-small", **overrides)
    assert {name: getattr(result, name) for name in overrides} == overrides
    assert chosen_settings(Settings.of(overrides), result) == []


def test_only_settings_that_differ_from_the_default_are_reported() -> None:
    overrides = Settings(dropout=0.1)
    message = chosen_settings(overrides, chosen("transformer-small", dropout=0.1))
    assert message == [
        "lr 0.003",
        "epochs 30",
        "batch_tokens 8,192",
        "schedule cosine",
        "adam_beta2 0.98",
        "label_smoothing 0.1",
    ]
    size, config = DataSize(1000, 20.0, 40), from_preset("tiny-bert", weights=False).config
    plain = resolve_settings(Settings(), size, config, pretrained=False)
    assert [one.split()[0] for one in chosen_settings(Settings(), plain)] == ["lr", "epochs", "batch_tokens"]


def test_other_tasks_and_fine_tuning_are_as_ever() -> None:
    config = from_preset("tiny-bert", weights=False).config
    for name, task in TASKS.items():
        assert task.recipe(None, 100) == PLAIN
        assert name == "translate" or task.recipe(config, 100) == PLAIN
    plain = fill_from_recipe(Settings())
    assert (plain.schedule, plain.warmup, plain.adam_beta2, plain.label_smoothing) == ("linear", 0.1, 0.999, 0.0)


@pytest.mark.parametrize(("sequences", "texts"), [(20_000, 32), (20_001, 64), (50_000, 64), (60_000, 128)])
def test_large_data_sets_have_large_steps(sequences: int, texts: int) -> None:
    narrow, wide = (from_preset(name, weights=False).config for name in ("bert-mini", "bert-base-uncased"))
    size = DataSize(sequences, 20.0, 60)
    result = resolve_settings(Settings(), size, narrow, pretrained=True)
    assert result.batch_tokens == 20 * texts
    small = resolve_settings(Settings(), replace(size, sequences=10_000), narrow, pretrained=True)
    assert result.lr == pytest.approx((small.lr or 0) * (texts / 32) ** 0.5)
    others = [
        resolve_settings(Settings(), size, wide, pretrained=True),
        resolve_settings(Settings(), size, narrow, pretrained=False),
        resolve_settings(Settings(), size, narrow, pretrained=True, recipe=probe_recipe(narrow, sequences)),
    ]
    assert all(one.batch_tokens == 20 * 32 for one in others)
    assert resolve_settings(Settings(batch_tokens=999), size, narrow, pretrained=True).batch_tokens == 999


PRETRAINING = {  # the rate and the warm-up that 16,384 tokens a step get, as benchmarks/rates.py found them to work
    "bert-tiny": (1.92e-3, 80),  # a tenth of all steps
    "bert-mini": (1.14e-3, 100),
    "bert-small": (6.8e-4, 100),
    "bert-medium": (4.2e-4, 200),
    "bert-base-uncased": (2.08e-4, 300),
    "bert-large-uncased": (5.6e-5, 400),  # 600 steps are more than half of all: a shorter warm-up to a lower rate
    "modernbert-base": (5e-4, 80),
    "gpt2": (5e-4, 80),
    "llama-micro": (1.92e-3, 80),
}


@pytest.mark.parametrize("name", PRETRAINING)
@pytest.mark.parametrize("factor", [1, 8])
def test_pretraining_takes_learning_rates_that_were_measured(name: str, factor: int) -> None:
    config = from_preset(name, weights=False).config
    size = DataSize(1_000_000, 512.0, 512)
    settings = Settings(steps=800, batch_tokens=factor * 16_384)
    result = resolve_settings(settings, size, config, pretrained=False, recipe=pretraining_recipe(config))
    lr, warmup = PRETRAINING[name]
    growth = min(factor, 2) ** 0.5 if config.norm_first else 1.0
    assert result.lr == pytest.approx(lr * growth, rel=0.02)
    assert result.warmup is not None
    assert warmup_steps(800, result.warmup) == warmup
    own = resolve_settings(
        replace(settings, warmup=0.02), size, config, pretrained=False, recipe=pretraining_recipe(config)
    )
    assert own.warmup == 0.02
    long = resolve_settings(
        replace(settings, steps=100_000), size, config, pretrained=False, recipe=pretraining_recipe(config)
    )
    assert long.warmup == 0.1


@pytest.mark.parametrize(
    ("classes", "rows", "start"),
    [(2, 16, "contrastive"), (2, 249, "contrastive"), (2, 250, "random"), (5, 100, "probe"), (77, 100_000, "probe")],
)
def test_what_a_head_starts_from_depends_on_rows_per_class(classes: int, rows: int, start: str) -> None:
    assert default_head_init(classes, rows) == start


def test_pairs_are_read_more_often() -> None:
    assert [pair_recipe(rows).epochs for rows in (1_000, 5_000, 50_000)] == [8, 6, None]


@pytest.mark.parametrize(
    ("rows", "gpu", "pairs", "per_step"),
    [
        (64, False, 800, 4),
        (200, False, 800, 4),
        (260, False, 1_040, 5),
        (300, False, 1_200, 6),
        (1_000, False, 3_000, 15),
        (50_000, False, 6_000, 30),
        (64, True, 32_000, 64),
        (3_000, True, 48_000, 96),
        (50_000, True, 64_000, 128),
    ],
)
def test_similarity_is_learned_from_more_pairs_on_a_gpu(rows: int, gpu: bool, pairs: int, per_step: int) -> None:
    config = from_preset("bert-base-uncased", weights=False).config
    training = similarity_training(config, rows, gpu=gpu)
    assert (training.pairs, training.per_step) == (pairs, per_step)
    assert training.lr == pytest.approx(6e-5 * (per_step / 32) ** 0.5 if gpu else 6e-5)
    assert isinstance(config, ModelConfig)
    narrow = similarity_training(replace(config, width=384), rows, gpu=gpu)
    assert narrow.lr == pytest.approx(training.lr * 2**0.75 * (1 if gpu else 1.5))


@pytest.mark.parametrize(
    ("rows", "epochs", "texts"), [(160, 3.5, 16), (161, 4, 16), (200, 4, 16), (201, 8, 32), (500, 8, 32), (501, 6, 32)]
)
def test_few_rows_from_a_probe_are_read_in_small_steps(rows: int, epochs: float, texts: int) -> None:
    config = from_preset("bert-mini", weights=False).config
    result = resolve_settings(
        Settings(), DataSize(rows, 50.0, 60), config, pretrained=True, recipe=probe_recipe(config, rows)
    )
    assert (result.epochs, result.batch_tokens) == (epochs, 50 * texts)
    assert result.lr == pytest.approx(6e-5 * 3**0.75)


@pytest.mark.parametrize(("rows", "gpu", "texts"), [(400, False, 16), (501, False, 32), (400, True, 32)])
def test_few_pairs_are_read_in_small_steps_on_a_cpu(rows: int, gpu: bool, texts: int) -> None:
    config = from_preset("bert-mini", weights=False).config
    recipe = similarity_recipe(config, rows, gpu=gpu)
    result = resolve_settings(Settings(), DataSize(rows, 50.0, 60), config, pretrained=True, recipe=recipe)
    assert result.batch_tokens == 50 * texts
    assert result.lr == pytest.approx(6e-5 * 3**0.75)


@pytest.mark.parametrize(
    ("name", "rows", "gpu", "frozen"),
    [
        ("bert-mini", 500, False, ("embeddings", "0")),
        ("bert-mini", 501, False, ()),
        ("bert-mini", 500, True, ()),
        ("bert-tiny", 500, False, ()),  # two layers
        ("bert-base-uncased", 500, False, ()),  # not measured
    ],
)
def test_few_pairs_do_not_change_the_first_layer(name: str, rows: int, gpu: bool, frozen: tuple[str, ...]) -> None:
    config = from_preset(name, weights=False).config
    recipe = similarity_recipe(config, rows, gpu=gpu)
    assert recipe.freeze == frozen
    assert fill_from_recipe(Settings(), recipe).freeze == frozen
    for given in (("1",), ("none",)):
        assert fill_from_recipe(Settings(freeze=given), recipe).freeze == given
    assert isinstance(config, ModelConfig)
    assert similarity_recipe(replace(config, distinct_layers=1), rows).freeze == ()


@pytest.mark.parametrize(
    ("name", "rows", "gpu", "measured"),
    [
        ("bert-mini", 200, False, True),
        ("bert-mini", 201, False, False),
        ("bert-mini", 200, True, False),
        ("bert-tiny", 200, False, False),  # two layers
        ("bert-base-uncased", 200, False, False),
    ],
)
def test_few_texts_do_not_change_the_first_layer(name: str, rows: int, gpu: bool, measured: bool) -> None:
    config = from_preset(name, weights=False).config
    recipe = contrastive_recipe(config, rows, gpu=gpu)
    assert (recipe is not None) == measured
    if recipe is not None:
        assert (recipe.freeze, recipe.dropout) == (("embeddings", "0"), 0.0)
        assert recipe.epochs == probe_recipe(config, rows).epochs


@pytest.mark.parametrize(
    ("rows", "classes", "gpu", "steps", "lr"),
    [
        (23, 2, False, 12, 8e-5),
        (23, 2, True, 25, 4e-5),
        (24, 2, False, 12, 1.5e-4),
        (32, 2, False, 12, 1.5e-4),
        (33, 2, False, 18, 1e-4),
        (65, 2, False, 25, 1e-4),
        (129, 2, False, 35, 7e-5),
        (200, 2, False, 35, 7e-5),
        (201, 2, False, 50, 5e-5),
        (47, 4, False, 12, 8e-5),
        (47, 4, True, 25, 4e-5),
        (48, 4, True, 50, 5e-5),
    ],
)
def test_few_rows_change_the_vectors_in_fewer_steps(rows: int, classes: int, gpu: bool, steps: int, lr: float) -> None:
    training = contrastive_training(rows, classes, gpu=gpu)
    assert (training.steps, training.lr) == (steps, lr)
    assert training.once == (steps < 50)


@pytest.mark.parametrize(
    ("rows", "classes", "gpu", "repeats"),
    [(48, 2, True, 3), (47, 2, True, 1), (48, 2, False, 1), (96, 3, True, 1), (23, 2, True, 1)],
)
def test_contrastive_training_of_two_classes_is_repeated_on_a_gpu(
    rows: int, classes: int, gpu: bool, repeats: int
) -> None:
    assert contrastive_training(rows, classes, gpu=gpu).repeats == repeats


def test_pairs_are_read_less_often_after_similarity() -> None:
    config = from_preset("bert-base-uncased", weights=False).config
    recipes = [similarity_recipe(config, rows) for rows in (500, 8_000, 8_001)]
    assert [recipe.epochs for recipe in recipes] == [4, 5, None]
    assert recipes[-1] == pair_recipe(8_001)


@pytest.mark.parametrize(
    ("name", "rows", "repeats"),
    [("mini", 500, 1), ("mini", 501, 3), ("mini", 8_000, 3), ("mini", 8_001, 1), ("base-uncased", 1_000, 1)],
)
def test_a_small_encoder_learns_pairs_several_times(name: str, rows: int, repeats: int) -> None:
    assert pair_repeats(from_preset(f"bert-{name}", weights=False).config, rows) == repeats


def test_trainings_that_are_repeated_are_shorter() -> None:
    config = from_preset("bert-mini", weights=False).config
    once, cpu, gpu = (similarity_recipe(config, 3_000, repeats=repeats, gpu=gpu) for repeats, gpu in WAYS)
    assert [recipe.epochs for recipe in (once, cpu, gpu)] == [5, 1.67, 3]
    assert (cpu.repeats * (cpu.epochs or 0)) == pytest.approx(once.epochs, abs=0.02)  # as long in all
    assert replace(once, epochs=3, repeats=3) == gpu


@pytest.mark.parametrize(
    ("rows", "mean_length", "repeats"),
    [
        (10_000, 12.0, None),
        (10_001, 24.0, 2),
        (30_000, 12.0, 2),
        (30_001, 12.0, 3),
        (100_000, 12.0, 3),
        (100_001, 12.0, None),
        (50_000, 25.0, None),
    ],
)
def test_many_short_texts_are_learned_several_times(rows: int, mean_length: float, repeats: int | None) -> None:
    small, base = (from_preset(name, weights=False).config for name in ("bert-mini", "bert-base-uncased"))
    recipe = short_text_recipe(small, rows, mean_length=mean_length)
    assert (recipe and recipe.repeats) == repeats
    assert short_text_recipe(base, rows, mean_length=mean_length) is None
    if recipe is not None:
        alone = resolve_settings(Settings(), DataSize(rows, mean_length, 60), small, pretrained=True)
        assert recipe.repeats * (recipe.epochs or 0) == alone.epochs  # as long in all


@pytest.mark.parametrize(
    ("rows", "gpu", "rdrop"), [(999, True, 0.0), (1_000, True, 1.0), (30_001, True, 0.0), (5_000, False, 0.0)]
)
def test_tags_are_learned_with_rdrop_on_a_gpu(rows: int, gpu: bool, rdrop: float) -> None:
    small = from_preset("bert-mini", weights=False).config
    assert tag_recipe(small, rows, joined=True, gpu=gpu).rdrop == rdrop
    base = from_preset("bert-base-uncased", weights=False).config
    assert tag_recipe(base, rows, joined=True, gpu=gpu).rdrop == 0.0


def test_a_small_encoder_is_fine_tuned_without_dropout() -> None:
    small = from_preset("bert-mini", weights=False).config
    assert fine_tuning_dropout(small, 1_000, mean_length=None) == 0.0
    assert fine_tuning_dropout(small, 300, mean_length=None) is None
    base = from_preset("bert-base-uncased", weights=False).config
    assert fine_tuning_dropout(base, 1_000, mean_length=None) is None


@pytest.mark.parametrize(("mean_length", "dropout"), [(24.0, 0.0), (25.0, None)])
def test_dropout_is_left_out_for_short_single_texts(mean_length: float, dropout: float | None) -> None:
    config = from_preset("bert-mini", weights=False).config
    assert fine_tuning_dropout(config, 1_000, mean_length=mean_length) == dropout


@pytest.mark.parametrize(("sentences", "joined", "epochs"), [(400, True, 9), (400, False, 8), (14_000, True, 5)])
def test_tags_have_one_learning_rate_for_steps_of_any_size(sentences: int, joined: bool, epochs: float) -> None:
    config = from_preset("tiny-bert", weights=False).config
    assert isinstance(config, ModelConfig)
    config = replace(config, width=384)
    recipe, size = tag_recipe(config, sentences, joined=joined), DataSize(sentences, 16.0, 128)
    result = resolve_settings(Settings(), size, config, pretrained=True, recipe=recipe)
    assert result.lr == pytest.approx(3e-4, rel=0.02)
    assert (result.layerwise_lr_decay, result.epochs) == (0.8, epochs)
    given = resolve_settings(Settings(layerwise_lr_decay=1.0), size, config, pretrained=True, recipe=recipe)
    assert given.layerwise_lr_decay == 1


def test_no_default_r_drop_without_dropout() -> None:
    recipe = Recipe(rdrop=1.0)
    assert fill_from_recipe(Settings(), recipe).rdrop == 1.0
    assert fill_from_recipe(Settings(dropout=0.0), recipe).rdrop == 0.0


@pytest.mark.parametrize(
    ("rows", "mean_length", "expected"),
    [
        (999, 50, None),
        (1_000, 50, (1.0, 0.0, None)),
        (10_000, 50, (1.0, 0.0, None)),
        (10_001, 50, (1.0, pytest.approx(2 / 3), 3)),
        (30_000, 25, (1.0, pytest.approx(2 / 3), 3)),
        (30_001, 50, None),
        (5_000, 24, None),
    ],
)
def test_rdrop_for_texts_that_are_not_short(rows: int, mean_length: float, expected: tuple[float, ...] | None) -> None:
    config = from_preset("bert-small", weights=False).config
    recipe = classifier_recipe(config, rows, mean_length=mean_length, gpu=True)
    assert (recipe and (recipe.rdrop, recipe.rdrop_start, recipe.epochs)) == expected
    assert classifier_recipe(config, rows, mean_length=mean_length, gpu=False) is None


def test_rdrop_is_not_used_for_wide_networks() -> None:
    config = from_preset("bert-base-uncased", weights=False).config
    assert classifier_recipe(config, 5_000, mean_length=50, gpu=True) is None


def test_rdrop_that_is_asked_for_is_used_in_all_steps() -> None:
    recipe = Recipe(rdrop=1.0, rdrop_start=0.5)
    assert fill_from_recipe(Settings(), recipe).rdrop_start == 0.5
    assert fill_from_recipe(Settings(rdrop=2.0), recipe).rdrop_start == 0.0
    assert fill_from_recipe(Settings(rdrop_start=0.2), recipe).rdrop_start == 0.2
    assert fill_from_recipe(Settings(), recipe, model_known=False).rdrop is None
