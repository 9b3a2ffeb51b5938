from __future__ import annotations

import pytest
from tests.serve.helpers import tiny

from regard.serve.operations.registry import OPERATIONS
from regard.serve.served import KINDS
from regard.serve.served_model import ServedModel, is_batch_invariant, warm_up
from regard.serve.settings import ServeLimits


def served_model(kind: str) -> ServedModel:
    return ServedModel(kind, "", tiny(kind), ServeLimits(), lambda name, value: None)


def test_every_kind_has_an_operation() -> None:
    assert tuple(OPERATIONS) == KINDS


def test_a_model_says_what_it_is_and_runs() -> None:
    served = served_model("bert")
    assert served.ping().result() is True
    assert served.info().result()["routes"] == ["/predict", "/embed", "/explain", "/tokenize"]
    served.close()
    assert served.ping().result() is False


@pytest.mark.parametrize("kind", ["bert", "reader", "masked", "gpt2"])
def test_warming_up(kind: str) -> None:
    served = served_model(kind)
    warm_up(served)
    served.close()


def test_batch_invariance_is_only_stated_where_it_is_known() -> None:
    assert is_batch_invariant(tiny("t5"))  # runs text by text
    assert not is_batch_invariant(tiny("modernbert"))
