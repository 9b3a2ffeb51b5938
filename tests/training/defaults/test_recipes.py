"""What is chosen where nothing is said, and that what is said always wins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from regard.checkpoint.source import from_preset
from regard.config import Config, ModelConfig
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


SMALL, WIDE = (from_preset(name, weights=False).config for name in ("bert-mini", "bert-base-uncased"))
FEW, MANY = 60, 60_000  # rows


def fine_tuned(rows: int, config: Config = SMALL, recipe: Recipe = PLAIN, **given: Any) -> Settings:
    size = DataSize(rows, 20.0, 60)
    return resolve_settings(Settings.of(given), size, config, pretrained=True, recipe=recipe)


def per_step(settings: Settings) -> float:
    """Texts per step."""
    return (settings.batch_tokens or 0) / 20


def test_large_data_sets_of_small_pretrained_encoders_have_large_steps() -> None:
    few, many = fine_tuned(10_000), fine_tuned(MANY)
    assert per_step(many) > per_step(few)
    assert many.lr == pytest.approx((few.lr or 0) * (per_step(many) / per_step(few)) ** 0.5)
    size = DataSize(MANY, 20.0, 60)
    scratch = resolve_settings(Settings(), size, SMALL, pretrained=False)
    others = (scratch, fine_tuned(MANY, WIDE), fine_tuned(MANY, recipe=probe_recipe(SMALL, MANY)))
    assert all(one.batch_tokens == few.batch_tokens for one in others)
    assert fine_tuned(MANY, batch_tokens=999).batch_tokens == 999


def test_pretraining_of_wider_networks_has_a_lower_rate_and_a_longer_warmup() -> None:
    results = []
    for name in ("bert-tiny", "bert-mini", "bert-small", "bert-base-uncased", "bert-large-uncased"):
        config = from_preset(name, weights=False).config
        results.append(pretrained(config))
        assert pretrained(config, warmup=0.02).warmup == 0.02
    rates = [result.lr or 0 for result in results]
    assert rates == sorted(set(rates), reverse=True)
    warmups = [result.warmup or 0 for result in results]
    assert warmups == sorted(warmups)
    assert pretrained(WIDE, steps=100_000).warmup == 0.1
    assert pretraining_recipe(from_preset("tiny-lstm-language", weights=False).config) == Recipe()


def test_pretraining_with_norms_first_has_a_higher_rate_for_large_steps() -> None:
    first, after = (from_preset(name, weights=False).config for name in ("gpt2", "bert-base-uncased"))
    rates = [[pretrained(config, batch_tokens=size).lr or 0 for size in (16_384, 131_072)] for config in (first, after)]
    assert rates[0][1] == pytest.approx(rates[0][0] * 2**0.5, rel=0.02)
    assert rates[1][1] == pytest.approx(rates[1][0], rel=0.02)


def pretrained(config: Config, **given: Any) -> Settings:
    settings = Settings.of({"steps": 800, "batch_tokens": 16_384, **given})
    size = DataSize(1_000_000, 512.0, 512)
    return resolve_settings(settings, size, config, pretrained=False, recipe=pretraining_recipe(config))


@pytest.mark.parametrize(
    ("classes", "rows", "start"),
    [(2, 16, "contrastive"), (2, 10_000, "random"), (5, 100, "probe"), (77, 100_000, "probe")],
)
def test_what_a_head_starts_from_depends_on_rows_per_class(classes: int, rows: int, start: str) -> None:
    assert default_head_init(classes, rows) == start


@pytest.mark.parametrize("gpu", [False, True])
def test_similarity_is_learned_from_more_pairs_of_more_rows_and_on_a_gpu(gpu: bool) -> None:
    few, many = (similarity_training(WIDE, rows, gpu=gpu) for rows in (FEW, MANY))
    assert few.pairs < many.pairs
    assert few.per_step < many.per_step
    assert similarity_training(WIDE, FEW, gpu=True).pairs > 10 * similarity_training(WIDE, FEW, gpu=False).pairs
    assert similarity_training(SMALL, FEW, gpu=gpu).lr > few.lr


def test_few_rows_from_a_probe_are_read_in_small_steps() -> None:
    few, some = (fine_tuned(rows, recipe=probe_recipe(SMALL, rows)) for rows in (FEW, 1_000))
    assert per_step(few) < per_step(some)
    assert few.lr == some.lr


def test_few_pairs_are_read_in_small_steps_on_a_cpu_without_the_first_layer() -> None:
    few, many, on_gpu = (
        similarity_recipe(SMALL, rows, gpu=gpu) for rows, gpu in ((400, False), (1_000, False), (400, True))
    )
    assert per_step(fine_tuned(400, recipe=few)) < per_step(fine_tuned(1_000, recipe=many))
    assert [recipe.freeze for recipe in (few, many, on_gpu)] == [("embeddings", "0"), (), ()]
    shallow = from_preset("bert-tiny", weights=False).config  # two layers
    assert isinstance(SMALL, ModelConfig)
    shared = replace(SMALL, distinct_layers=1)
    assert [similarity_recipe(config, 400).freeze for config in (shallow, shared, WIDE)] == [()] * 3
    for given in (("1",), ("none",)):
        assert fill_from_recipe(Settings(freeze=given), few).freeze == given


def test_few_texts_do_not_change_the_first_layer_on_a_cpu() -> None:
    recipe = contrastive_recipe(SMALL, FEW, gpu=False)
    assert recipe is not None
    assert (recipe.freeze, recipe.dropout) == (("embeddings", "0"), 0.0)
    assert recipe.epochs == probe_recipe(SMALL, FEW).epochs
    shallow = from_preset("bert-tiny", weights=False).config
    others = [(SMALL, 1_000, False), (SMALL, FEW, True), (shallow, FEW, False), (WIDE, FEW, False)]
    assert [contrastive_recipe(config, rows, gpu=gpu) for config, rows, gpu in others] == [None] * 4


def test_few_rows_change_the_vectors_in_fewer_steps() -> None:
    cpu = [contrastive_training(rows, 2, gpu=False) for rows in (24, 40, 100, 150, 240)]
    steps = [training.steps for training in cpu]
    assert steps == sorted(set(steps))
    assert [training.once for training in cpu] == [True, True, True, True, False]
    rates = [training.lr for training in cpu]
    assert rates == sorted(rates, reverse=True)
    fewest, more = (contrastive_training(20, 2, gpu=gpu) for gpu in (False, True))
    assert fewest.steps < more.steps


def test_contrastive_training_of_two_classes_is_repeated_on_a_gpu() -> None:
    repeats = [
        contrastive_training(96, classes, gpu=gpu).repeats for classes, gpu in ((2, True), (3, True), (2, False))
    ]
    assert repeats[0] > 1
    assert repeats[1:] == [1, 1]


def test_pairs_are_read_more_often_and_less_so_after_similarity() -> None:
    epochs = [pair_recipe(rows).epochs for rows in (1_000, 5_000, 50_000)]
    assert (epochs[0] or 0) > (epochs[1] or 0)
    assert epochs[2] is None
    assert (similarity_recipe(WIDE, 500).epochs or 0) < (pair_recipe(500).epochs or 0)
    assert similarity_recipe(WIDE, MANY) == pair_recipe(MANY)


def test_a_small_encoder_learns_pairs_several_times() -> None:
    assert [pair_repeats(SMALL, rows) > 1 for rows in (FEW, 1_000, MANY)] == [False, True, False]
    assert pair_repeats(WIDE, 1_000) == 1
    once, cpu, gpu = (similarity_recipe(SMALL, 3_000, repeats=repeats, gpu=gpu) for repeats, gpu in WAYS)
    assert (cpu.repeats * (cpu.epochs or 0)) == pytest.approx(once.epochs, abs=0.02)  # as long in all
    assert (cpu.epochs or 0) < (gpu.epochs or 0)


def test_many_short_texts_are_learned_several_times() -> None:
    for rows in (20_000, MANY):
        recipe = short_text_recipe(SMALL, rows, mean_length=12.0)
        assert recipe is not None
        alone = resolve_settings(Settings(), DataSize(rows, 12.0, 60), SMALL, pretrained=True)
        assert recipe.repeats * (recipe.epochs or 0) == alone.epochs  # as long in all
    others = [(SMALL, FEW, 12.0), (SMALL, 10**6, 12.0), (SMALL, MANY, 50.0), (WIDE, MANY, 12.0)]
    assert [short_text_recipe(config, rows, mean_length=mean) for config, rows, mean in others] == [None] * 4


def test_tags_are_learned_with_rdrop_on_a_gpu() -> None:
    used = [(SMALL, 5_000, True), (SMALL, FEW, True), (SMALL, MANY, True), (SMALL, 5_000, False), (WIDE, 5_000, True)]
    rdrop = [tag_recipe(config, rows, joined=True, gpu=gpu).rdrop for config, rows, gpu in used]
    assert rdrop == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_small_encoder_is_fine_tuned_without_dropout() -> None:
    """On pairs and short texts, unless there are few rows."""
    known = [(SMALL, 1_000, None), (SMALL, 1_000, 10.0), (SMALL, 1_000, 50.0), (SMALL, FEW, None), (WIDE, 1_000, None)]
    dropout = [fine_tuning_dropout(config, rows, mean_length=mean) for config, rows, mean in known]
    assert dropout == [0.0, 0.0, None, None, None]


def test_tags_have_one_learning_rate_for_steps_of_any_size() -> None:
    few, alone, many = (
        fine_tuned(rows, recipe=tag_recipe(SMALL, rows, joined=joined))
        for rows, joined in ((400, True), (400, False), (14_000, True))
    )
    assert few.lr == alone.lr == many.lr
    assert few.layerwise_lr_decay == 0.8
    assert (few.epochs or 0) > (many.epochs or 0)
    assert fine_tuned(400, recipe=tag_recipe(SMALL, 400, joined=True), layerwise_lr_decay=1.0).layerwise_lr_decay == 1


def test_rdrop_for_texts_that_are_not_short() -> None:
    def recipe(rows: int, *, mean_length: float = 50, gpu: bool = True, config: Config = SMALL) -> Recipe | None:
        return classifier_recipe(config, rows, mean_length=mean_length, gpu=gpu)

    some, many = recipe(5_000), recipe(20_000)
    assert some is not None
    assert many is not None
    assert (some.rdrop, some.rdrop_start, some.epochs) == (1.0, 0.0, None)
    assert (many.rdrop, many.epochs) == (1.0, 3)
    assert many.rdrop_start > 0.5
    assert recipe(FEW) is recipe(MANY) is recipe(5_000, mean_length=10) is None
    assert recipe(5_000, gpu=False) is recipe(5_000, config=WIDE) is None


def test_rdrop_that_is_asked_for_is_used_in_all_steps() -> None:
    recipe = Recipe(rdrop=1.0, rdrop_start=0.5)
    assert fill_from_recipe(Settings(), recipe).rdrop_start == 0.5
    assert fill_from_recipe(Settings(rdrop=2.0), recipe).rdrop_start == 0.0
    assert fill_from_recipe(Settings(rdrop_start=0.2), recipe).rdrop_start == 0.2
    assert fill_from_recipe(Settings(), recipe, model_known=False).rdrop is None
    assert fill_from_recipe(Settings(dropout=0.0), recipe).rdrop == 0.0  # passes without dropout are the same
