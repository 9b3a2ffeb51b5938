"""Two models on one text."""

from __future__ import annotations

import pytest
from tests.look.models import KINDS, TEXT, session, transformer

from regard.config import AttentionConfig
from regard.errors import InputError
from regard.look.views.arrays import unpacked
from regard.look.views.compare import difference
from regard.look.views.fields import Fields

FEWER = AttentionConfig(heads=2)


def test_a_model_does_not_differ_from_itself() -> None:
    look = session(KINDS["encoder"](), KINDS["encoder"]())
    answer = difference(look, Fields({"text": TEXT}))
    assert unpacked(answer["difference"]).abs().max() == 0
    assert answer["states"] == pytest.approx([1, 1, 1], abs=1e-4)


def test_differences_equal_a_plain_loop() -> None:
    models = [KINDS["encoder"](), transformer("tiny-bert", seed=5)]
    look = session(*models)
    answer = unpacked(difference(look, Fields({"text": TEXT}))["difference"])
    weights = [model.attention(TEXT)[2][1] for model in models]
    total = 0.0
    for one, two in zip(*[each.tolist() for each in weights], strict=True):
        total += sum(abs(a - b) for a, b in zip(one, two, strict=True)) / 2
    assert float(answer[1, 1]) == pytest.approx(total / len(weights[0]), abs=1e-4)


def test_models_that_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="one model is open"):
        difference(session(KINDS["encoder"]()), Fields({"text": TEXT}))
    with pytest.raises(InputError, match="different tokens"):
        difference(session(KINDS["encoder"](), KINDS["gpt2"]()), Fields({"text": TEXT}))
    with pytest.raises(InputError, match="do not correspond"):
        difference(session(KINDS["encoder"](), transformer("tiny-bert", attention=FEWER)), Fields({"text": TEXT}))


def test_models_of_different_depth_share_their_first_layers() -> None:
    answer = difference(session(KINDS["encoder"](), transformer("tiny-bert", layers=3)), Fields({"text": TEXT}))
    assert answer["difference"]["shape"][0] == 2
    assert "the first 2 are compared" in answer["notices"][0]
