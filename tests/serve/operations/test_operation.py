"""Every operation gives what the method of `Model` gives, bit for bit, whatever runs in the same batch."""

from __future__ import annotations

import pytest
from tests.serve.helpers import TEXTS, table_of, tiny

from regard.errors import InputError
from regard.serve.operations.operation import as_input
from regard.serve.operations.registry import OPERATIONS
from regard.serve.served_model import ServedModel

CAN = {
    "bert": {"predict", "embed"},
    "tagger": {"predict", "embed"},
    "reader": {"predict", "embed", "answer"},
    "masked": {"embed", "fill"},
    "gpt2": {"embed", "generate"},
    "t5": {"predict", "embed", "translate", "generate"},
    "gru": {"predict", "translate", "generate"},
}


@pytest.mark.parametrize("kind", CAN)
def test_each_model_has_its_operations(kind: str) -> None:
    with table_of(kind) as table:
        served = table.get(kind)
        assert isinstance(served, ServedModel)
        for name in OPERATIONS:
            if name in CAN[kind] or name in ("explain", "tokenize"):
                assert served.operation(name) is served.operation(name)
            else:
                with pytest.raises(InputError):
                    served.operation(name)


def test_a_failing_item_does_not_fail_the_others() -> None:
    with table_of("bert") as table:
        served = table.get(None)
        good, empty, wrong = served.submit("predict", [TEXTS[0], " ", {"x": "y"}], {})
        assert good.result(10).answer == tiny("bert").predict([TEXTS[0]])[0].json()
        assert "empty" in str(empty.exception(10))
        assert "text" in str(wrong.exception(10))


def test_items_as_inputs() -> None:
    assert as_input(["a", "b"]) == ("a", "b")
    assert as_input("a") == "a"
