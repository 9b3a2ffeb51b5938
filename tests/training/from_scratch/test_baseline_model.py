"""The network of a baseline before it is fitted, and the settings that baselines take."""

from __future__ import annotations

import pytest
from tests.training.starting import CLASSIFY

from regard.baselines import BASELINES
from regard.data.records import ClassifyRecord
from regard.errors import InputError
from regard.training.from_scratch.baseline_model import BASELINE_SETTINGS, baseline_model, check_baseline
from regard.training.settings import Settings


def test_a_baseline_has_the_labels_of_the_task() -> None:
    records = [ClassifyRecord("a good day", "good"), ClassifyRecord("a bad day", "bad")]
    model = baseline_model("ngram", CLASSIFY, records, start=None, seed=0, report=lambda *_: None)
    assert model.checkpoint.labels == CLASSIFY.names
    assert not model.pretrained
    assert not model.checkpoint.untrained  # it will be fitted before it is saved


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 3}, "epochs was given, but the baseline ngram is fitted at once"),
        ({"dropout": 0.2}, "the baseline ngram has no network with dropout"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_baseline(BASELINES["ngram"], "classify", Settings(**settings), start=None, tokenizer=None)  # type: ignore[arg-type]


def test_a_baseline_has_its_own_tokenizer_and_starts_from_nothing() -> None:
    check_baseline(BASELINES["static"], "classify", Settings(epochs=3), start="minilm", tokenizer=None)
    with pytest.raises(InputError, match="learns from the training data alone"):
        check_baseline(BASELINES["ngram"], "classify", Settings(), start="minilm", tokenizer=None)
    with pytest.raises(InputError, match="tokenizer was given, but the baseline ngram has its own"):
        check_baseline(BASELINES["ngram"], "classify", Settings(), start=None, tokenizer="vocabulary")


def test_the_settings_of_baselines_exist() -> None:
    assert all(hasattr(Settings(), name) for name in BASELINE_SETTINGS)
