"""The plan of a training: shapes of batches, micro-batches, precision, compilation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.data.batching.batches import BatchPlan, BatchSettings
from regard.data.batching.examples import Examples, ExamplesBuilder
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import PairRecord
from regard.errors import InputError
from regard.tasks.classify import Classify
from regard.tasks.embed import Embed
from regard.text.learn import train_tokenizer_from_texts
from regard.training.engine.distributed.world import World
from regard.training.engine.stepper import BatchShape
from regard.training.job import TrainingJob, total_steps
from regard.training.plan import (
    fixed_batch_shape,
    fixes_shapes,
    plan_job,
    prepare_network,
    tight_batch_tokens,
    training_dtype,
    with_compilation,
)
from regard.training.settings import Lora, Settings

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def plan(folder: Path, *, world: World | None = None, rows: int = 12, **settings: Any) -> TrainingJob:
    """The plan for rows of 10 tokens."""
    builder = ExamplesBuilder()
    for row in range(rows):
        builder.add(row, [5] * 10, by_sequence={"label": row % 2})
    network = from_preset("tiny-bert", heads={"sequence": 2}).network
    task = Classify(names=("a", "b"))
    options = Settings(**{"lr": 1e-3, "batch_tokens": 40, "epochs": 2, **settings})
    return plan_job(network, task, builder.build(), options, folder, world=world)


def test_steps_and_batches(tmp_path: Path) -> None:
    job = plan(tmp_path, seed=3)
    assert (job.batches.tokens, job.batches.sequences, job.batches.seed) == (40, None, 3)
    assert job.steps == 6  # 12 rows, 4 in a batch, 2 epochs
    assert (job.dtype, job.compile, job.record, job.shape) == (torch.float32, "no", False, None)
    assert job.memory is not None
    assert plan(tmp_path, batch_size=3).steps == 8


@pytest.mark.parametrize(
    ("options", "ranks", "expected"),
    [
        (None, 1, 40),  # a whole step
        (25, 1, 25),
        (3, 1, 10),  # the longest sequence must fit
        (1000, 1, 40),
        (None, 2, 30),  # half of a step, and one sequence more
        (None, 4, 20),
        (15, 4, 15),
    ],
)
def test_tokens_in_memory_at_once(tmp_path: Path, options: int | None, ranks: int, expected: int) -> None:
    job = plan(tmp_path, world=World(0, ranks), micro_batch_tokens=options)
    assert job.micro_batch_tokens == expected


def test_a_loss_over_all_pairs_warns_of_several_ranks(tmp_path: Path) -> None:
    """Contrastive pairs: each rank compares a text with those of its own part of the batch."""
    records = [PairRecord(f"one {number}", f"two {number}") for number in range(8)]
    checkpoint = from_preset("tiny-bert")
    words = train_tokenizer_from_texts(["one two 1 2 3 4 5 6 7 0"], size=22)
    task = Embed.from_records(records)
    examples = task.examples(records, Preprocessing(words, checkpoint.config), labeled=True)
    settings = Settings(lr=1e-3, batch_tokens=64, steps=1)
    plan_job(checkpoint.network, task, examples, settings, tmp_path)
    with pytest.warns(UserWarning, match="each of 2 ranks compares the texts of its own part"):
        plan_job(checkpoint.network, task, examples, settings, tmp_path, world=World(0, 2))


def test_sequences_of_one_length_make_a_rectangle() -> None:
    lengths = np.full(50, 30)
    assert fixed_batch_shape(128, None, lengths, 30) == (BatchShape(120, 4, 30), 4)
    assert fixed_batch_shape(128, 3, lengths, 30) == (BatchShape(90, 3, 30), 3)


def test_other_lengths_leave_space_for_padding() -> None:
    lengths = np.array([10, 20, 30, 20])
    shape, sequences = fixed_batch_shape(640, None, lengths, 30)
    assert sequences == 48  # 1.5 times 640 tokens of 20 each
    assert shape == BatchShape(640, 64, 64)  # 48 and 10 of padding, rounded up to a multiple of 8
    assert fixed_batch_shape(640, 8, lengths, 30) == (BatchShape(640, 24, 64), 8)
    assert fixed_batch_shape(640, 8, lengths, 30, 40)[0] == BatchShape(640, 24, 40)  # the network has 40 positions


def test_the_cpu_computes_in_float32_without_compilation() -> None:
    network = from_preset("tiny-bert").network
    for dtype in ("auto", "bf16", "fp32"):
        assert training_dtype(Settings(dtype=dtype), CPU) == torch.float32  # type: ignore[arg-type]
    assert not fixes_shapes(network, Settings(compile="auto"), CPU)


def test_a_gpu_computes_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    assert training_dtype(Settings(), GPU) == torch.bfloat16
    assert training_dtype(Settings(dtype="fp32"), GPU) == torch.float32
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    assert training_dtype(Settings(), GPU) == torch.float32


@pytest.mark.parametrize(
    ("preset", "settings", "fixed"),
    [
        ("tiny-bert", {}, True),
        ("tiny-gpt2", {}, True),
        ("tiny-bert", {"compile": "no"}, True),
        ("tiny-bert", {"fsdp": True}, False),
        ("tiny-bert", {"dtype": "fp32"}, False),
        ("tiny-transformer", {}, False),
        ("tiny-lstm-language", {}, False),
    ],
)
def test_steps_that_have_fixed_shapes_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, preset: str, settings: dict[str, Any], fixed: bool
) -> None:
    monkeypatch.setattr("regard.training.plan.runs_flat", lambda *_: True)
    assert fixes_shapes(from_preset(preset).network, Settings(**settings), GPU) is fixed


def test_the_network_is_prepared_as_the_settings_say() -> None:
    network = from_preset("tiny-bert", heads={"sequence": 2}).network
    total = sum(parameter.numel() for parameter in network.parameters())
    prepare_network(network, Settings(gradient_checkpointing=True, freeze=("encoder",)))
    assert network.encoder.gradient_checkpointing  # type: ignore[union-attr]
    assert not any(parameter.requires_grad for parameter in network.encoder.parameters())  # type: ignore[union-attr]
    trained = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    assert 0 < trained < total / 2


def test_lora_trains_few_weights() -> None:
    network = from_preset("tiny-bert", heads={"sequence": 2}).network
    prepare_network(network, Settings(lora=Lora(rank=2)))
    trainable = [parameter.numel() for parameter in network.parameters() if parameter.requires_grad]
    assert 0 < sum(trainable) < 0.5 * sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("tiny-bert", {"fsdp": True}, r"lora\.rank and fsdp were both given"),
        ("tiny-gru", {}, r"lora\.rank is not possible for a recurrent network"),
    ],
)
def test_where_lora_is_not_possible(preset: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare_network(from_preset(preset).network, Settings(lora=Lora(rank=2), **settings))


@pytest.mark.parametrize(("rows", "mean"), [(500, 12.0), (5000, 60.0)])
def test_a_fixed_shape_for_a_number_of_texts_is_nearly_full(rows: int, mean: float) -> None:
    lengths = np.clip(np.random.default_rng(0).lognormal(np.log(mean), 0.8, rows), 3, 512).astype(np.int64)
    tokens = tight_batch_tokens(32, lengths, seed=0)
    batches = BatchPlan(lengths, BatchSettings(tokens, sequences=32))
    assert batches.steps <= 1.01 * -(-rows // 32)
    assert batches.fill > 0.9


def test_one_text_longer_than_the_rest_still_fits() -> None:
    lengths = np.array([10] * 31 + [512])
    assert tight_batch_tokens(4, lengths, seed=0) >= 512


@pytest.mark.parametrize(
    ("settings", "steps", "mode"),
    [
        ({}, 1_000, "measure"),
        ({"compile": "no"}, 10**9, "no"),
        ({"compile": "yes"}, 1, "yes"),
        ({}, 10**12, "yes"),
    ],
)
def test_when_the_step_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], steps: int, mode: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    job = replace(plan(tmp_path, **settings), steps=steps)
    assert with_compilation(job).compile == mode


BATCHES = BatchSettings(tokens=100, sequences=4)


def examples(rows: int) -> Examples:
    builder = ExamplesBuilder()
    for row in range(rows):
        builder.add(row, [1, 2, 3], by_sequence={"label": row % 2})
    return builder.build()


def test_steps_that_are_given_count() -> None:
    assert total_steps(examples(10), BATCHES, Settings(steps=7)) == 7


@pytest.mark.parametrize(
    ("epochs", "steps"),
    [(None, 3), (1, 3), (2, 6), (1.5, 5), (0.5, 2), (0.01, 1)],  # 10 rows in batches of 4 are 3 steps
)
def test_parts_of_an_epoch_are_rounded_up(epochs: float | None, steps: int) -> None:
    assert total_steps(examples(10), BATCHES, Settings(epochs=epochs)) == steps


class OtherRows:
    """Sequences of which each epoch has others."""

    def epoch(self, number: int) -> Examples:
        return examples(10)


@pytest.mark.parametrize(("epochs", "steps"), [(1, 3), (1.5, 4), (1.4, 4), (0.01, 1)])
def test_epochs_of_other_rows_are_estimated_from_the_first(epochs: float, steps: int) -> None:
    """Python rounds 4.5 to 4."""
    assert total_steps(OtherRows(), BATCHES, Settings(epochs=epochs)) == steps
