"""A tiny classifier, and the same weights in transformers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.look.tiny_models import model


@pytest.fixture(scope="module")
def ours() -> Any:
    return model("tiny-bert", {"sequence": 3})


@pytest.fixture(scope="module")
def theirs(ours: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers")
    folder = ours.save(tmp_path_factory.mktemp("models") / "bert")
    loaded = transformers.BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    return loaded.eval()
