"""Recurrent networks of every setting, and a batch with its targets."""

from typing import Any

import pytest
import torch
from tests.model.recurrent.build import SOURCE, TARGET, bidirectional, build

SCORES = ("none", "dot", "bilinear", "additive")
WAYS: dict[str, dict[str, Any]] = {
    **{score: {"score": score} for score in SCORES},
    **{f"{score} fed": {"score": score, "input_feeding": True} for score in SCORES[1:]},
    "local": {"score": "dot", "window": 2},
    "local fed": {"score": "bilinear", "window": 1, "input_feeding": True},
    "predicted": {"score": "dot", "window": 2, "center": "predicted"},
    "predicted fed": {"score": "additive", "window": 2, "center": "predicted", "input_feeding": True},
    "lstm": {"score": "bilinear", "cell": "lstm"},
    "lstm fed, two layers": {"score": "additive", "cell": "lstm", "layers": 2, "input_feeding": True},
    "one direction": {"score": "dot", "bidirectional": False},
    "bottleneck, two layers": {"layers": 2},
    "tied": {"score": "dot", "embedding_width": 8, "tied": True},
}


@pytest.fixture(params=WAYS, name="network")
def network_fixture(request):
    return build(**WAYS[request.param])


@pytest.fixture(name="pair")
def pair_fixture(tokens):
    return tokens(SOURCE, vocabulary=20), tokens(TARGET, seed=1, vocabulary=20)


@pytest.fixture
def sides():
    torch.manual_seed(0)
    return bidirectional(20, 8).double().eval()
