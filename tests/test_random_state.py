"""The library does not change the random state of its caller."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import samples
from regard.random_state import preserved_random_state, seeded

SMALL: dict[str, Any] = {"preset": "tiny-bert", "device": "cpu", "steps": 2, "batch_tokens": 256}
CPU = torch.device("cpu")


def random_states() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state(legacy=True)
    return (random.getstate(), (name, np.asarray(keys).tolist(), *rest), torch.get_rng_state().tolist())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    regard.train(samples.path("messages"), out=tmp_path / "run", **SMALL)
    return tmp_path / "run"


def test_train_and_pretrain_leave_it_as_it_was(tmp_path: Path) -> None:
    before = random_states()
    regard.train(samples.path("messages"), out=tmp_path / "run", **SMALL)
    assert random_states() == before
    regard.pretrain([samples.path("corpus")], out=tmp_path / "lm", objective="mlm", **SMALL)
    assert random_states() == before


def test_load_predict_evaluate_and_create_leave_it_as_it_was(folder: Path) -> None:
    before = random_states()
    model = regard.load(folder, device="cpu")
    assert random_states() == before
    model.predict(["a text"])
    model.embed(["a text"])
    assert random_states() == before
    regard.evaluate(model, samples.path("messages"))
    assert random_states() == before
    regard.create("tiny-bert", device="cpu")
    assert random_states() == before


def test_a_seeded_block_repeats_and_leaves_no_trace() -> None:
    before = torch.get_rng_state()
    with seeded(3, CPU):
        first = torch.rand(2)
    with seeded(3, CPU):
        assert torch.equal(torch.rand(2), first)
    with preserved_random_state(CPU):
        torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before)
