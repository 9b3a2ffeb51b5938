"""What a training would take here: counted from the data, with a speed that is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.data.check.finding import LengthStatistics
from regard.training.forecast import (
    GPU_START_SECONDS,
    MachineSpeed,
    estimate_training,
    forecast,
    measure_speed,
)

LENGTHS = LengthStatistics("tokens", 1000, 30_000, 30.0, 30, 50, 60, 512, 0.0, (0, 10), (10,))
SPEED = MachineSpeed("this machine (2 CPU cores)", 1e11, 5e8, gpu=False)


def test_it_grows_with_the_network_and_with_the_data() -> None:
    small, large = (from_preset(name, weights=False) for name in ("bert-tiny", "bert-base-uncased"))
    one = estimate_training("small", small, SPEED, "classify", 1000, LENGTHS, pretrained=True)
    two = estimate_training("large", large, SPEED, "classify", 1000, LENGTHS, pretrained=True)
    more = estimate_training("large", large, SPEED, "classify", 10_000, LENGTHS, pretrained=True)
    assert one.seconds < two.seconds < more.seconds
    assert one.memory < two.memory
    assert (one.epochs, two.epochs) == (6, 6)
    assert one.tokens == 30_000
    work = 6 * 85e6 * 6 * 30_000 / 1e11  # operations a weight and token, weights, epochs, tokens
    assert work < two.seconds < 1.6 * work
    assert two.device == "this machine (2 CPU cores)"


@pytest.mark.parametrize("name", ["bert-tiny", "transformer-small"])
def test_any_network_is_measured(name: str) -> None:
    checkpoint = from_preset(name, weights=False)
    state = torch.random.get_rng_state()
    speed = measure_speed(checkpoint.config, LENGTHS, torch.device("cpu"))
    assert speed.operations > 1e6
    assert speed.updates > 1e4
    assert "CPU core" in speed.device
    assert torch.equal(torch.random.get_rng_state(), state)


def test_every_task() -> None:
    checkpoint = from_preset("bert-tiny", weights=False)
    result = forecast("bert-tiny", checkpoint, pretrained=False)("classify", 100, LENGTHS, 2, True)
    assert result is not None
    assert result.model == "bert-tiny"
    assert result.seconds > 0
    assert forecast("bert-tiny", checkpoint, pretrained=False)("minimal", 100, LENGTHS, 0, True) is None
    for task in ("pair", "tag", "answer", "text"):
        assert estimate_training("bert-tiny", checkpoint, SPEED, task, 100, LENGTHS, pretrained=True).steps > 0


def test_tags_have_two_passes_per_step_on_a_gpu() -> None:
    small = from_preset("bert-mini", weights=False)
    gpu = replace(SPEED, gpu=True)
    with_rdrop, too_few = (
        estimate_training("small", small, gpu, "tag", rows, LENGTHS, pretrained=True) for rows in (1000, 999)
    )
    assert with_rdrop.seconds - GPU_START_SECONDS > 1.5 * (too_few.seconds - GPU_START_SECONDS)
    assert with_rdrop.memory > too_few.memory


def test_pairs_of_a_sentence_encoder_take_the_time_to_learn_similarity() -> None:
    plain = from_preset("bert-base-uncased", weights=False)
    encoder = replace(plain, pooling="mean")
    before, after = (
        estimate_training("base", checkpoint, SPEED, "pair", 100, LENGTHS, pretrained=True)
        for checkpoint in (plain, encoder)
    )
    work = 6 * 85e6 * 800 * 30 / 1e11  # operations a weight and token, weights, pairs, tokens
    assert after.epochs < before.epochs
    assert (before.similarity_pairs, after.similarity_pairs) == (0, 800)
    assert work < after.seconds - before.seconds * after.epochs / before.epochs < 2.5 * work


def test_few_pairs_take_less_time_without_the_first_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of four layers computes a third of its operations, and fewer than a third of the weights are updated."""
    encoder = replace(from_preset("bert-mini", weights=False), pooling="mean")
    few, gpu = (
        estimate_training("mini", encoder, speed, "pair", 500, LENGTHS, pretrained=True)
        for speed in (SPEED, replace(SPEED, gpu=True))
    )
    assert "all but the first layer trained" in few.assumptions
    assert "all weights trained" in gpu.assumptions
    monkeypatch.setattr("regard.training.defaults.recipes.FIRST_PARTS", ())
    whole = estimate_training("mini", encoder, SPEED, "pair", 500, LENGTHS, pretrained=True)
    assert "all weights trained" in whole.assumptions
    assert 0.3 < few.seconds / whole.seconds < 5 / 6


def test_validation_rows_that_are_split_off_are_not_trained_on() -> None:
    """520 rows are more than the 500 from which pairs are trained three times, but 468 are not."""
    encoder = replace(from_preset("bert-mini", weights=False), pooling="mean")
    whole, split = (
        estimate_training("mini", encoder, SPEED, "pair", 520, LENGTHS, pretrained=True, split_off=split_off)
        for split_off in (False, True)
    )
    assert (whole.trainings, whole.similarity_pairs, whole.tokens) == (3, 1560, 520 * 30)
    assert (split.trainings, split.similarity_pairs, split.tokens) == (1, 1404, 468 * 30)


@pytest.mark.parametrize(
    ("rows", "classes", "contrastive", "epochs"),
    [
        (32, 4, 12, 0),
        (240, 2, 50, 0),
        (400, 2, 0, 8),
        (32, 10, 0, 3.5),
    ],
)
def test_few_labels_of_a_sentence_encoder(rows: int, classes: int, contrastive: int, epochs: float) -> None:
    encoder = replace(from_preset("bert-base-uncased", weights=False), pooling="mean")
    about = estimate_training("base", encoder, SPEED, "classify", rows, LENGTHS, pretrained=True, classes=classes)
    assert (about.contrastive_steps, about.epochs) == (contrastive, epochs)
    if contrastive:
        work = 6 * 85e6 * contrastive * 32 * 30 / 1e11  # as above
        assert work < about.seconds < 2.5 * work
        assert "twice" not in about.assumptions
        assert about.trainings == 1


def test_few_labels_of_a_small_encoder_train_all_but_the_first_layer() -> None:
    encoder = replace(from_preset("bert-mini", weights=False), pooling="mean")
    abouts = [
        estimate_training("mini", encoder, SPEED, "classify", rows, LENGTHS, pretrained=True, classes=2)
        for rows in (100, 240)
    ]
    assert ["all but the first layer" in about.assumptions for about in abouts] == [True, False]


@pytest.mark.parametrize(
    ("task", "rows", "mean", "classes", "epochs", "words"),
    [
        ("pair", 3_000, 30.0, 2, 1.67, ", three times"),
        ("classify", 20_000, 12.0, 2, 2, ", twice"),
        ("classify", 50_000, 12.0, 2, 1, ", three times"),
        ("classify", 50_000, 12.0, 3, 3, ""),
    ],
)
def test_trainings_that_are_averaged(
    task: str, rows: int, mean: float, classes: int, epochs: float, words: str
) -> None:
    """Together they have as many epochs as one training, and take as long."""
    encoder = replace(from_preset("bert-mini", weights=False), pooling="mean")
    lengths = replace(LENGTHS, mean=mean)
    about = estimate_training("mini", encoder, SPEED, task, rows, lengths, pretrained=True, classes=classes)
    assert about.epochs == epochs
    assert f" tokens{words}, AdamW" in about.assumptions
    if rows == 50_000:
        once = estimate_training("mini", encoder, SPEED, task, rows, lengths, pretrained=True, classes=3)
        assert about.seconds == pytest.approx(once.seconds, rel=0.02)


def test_on_a_gpu_a_small_classifier_is_trained_twice() -> None:
    small = from_preset("bert-tiny", weights=False)
    gpu = replace(SPEED, gpu=True)
    pairs, texts = (
        estimate_training("s", small, gpu, task, 5000, LENGTHS, pretrained=True) for task in ("pair", "classify")
    )
    assert "twice" not in pairs.assumptions
    assert texts.assumptions.startswith(f"{texts.epochs:g} epochs in {texts.steps:,} steps of ")
    assert texts.assumptions.endswith(" tokens, twice, AdamW, all weights trained")
    scratch = estimate_training("s", small, gpu, "classify", 5000, LENGTHS, pretrained=False)
    assert "twice" not in scratch.assumptions
