"""Explanations of one network in several threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.look.tiny_models import TEXT, model

from regard.look.explain.exclusive import exclusive
from regard.look.explain.methods import methods_for
from regard.model.attention import AttentionKernel


def test_one_thread_at_a_time_and_the_same_again() -> None:
    network = model("tiny-bert").network
    entered = threading.Event()

    def enter() -> None:
        with exclusive(network):
            entered.set()

    with exclusive(network), exclusive(network):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.05)
    thread.join()
    assert entered.is_set()


def test_parallel_explanations_are_those_of_one_after_the_other() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    names = [name for name in methods_for(loaded.network) if name != "integrated_gradients"] * 2
    expected = {name: loaded.explain(TEXT, method=name).token_scores for name in set(names)}
    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda name: loaded.explain(TEXT, method=name).token_scores, names))
    for name, values in zip(names, scores, strict=True):
        assert values == pytest.approx(expected[name], abs=1e-5), name
    assert {one.kernel for one in loaded.network.modules() if isinstance(one, AttentionKernel)} == {"auto"}
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in loaded.network.modules())
