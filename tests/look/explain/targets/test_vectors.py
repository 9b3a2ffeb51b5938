"""Similarities and lengths of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.look.tiny_models import CONTEXT, TEXT, model


def test_the_similarity_is_that_of_the_vectors() -> None:
    loaded = model("tiny-bert", {})
    explanation = loaded.explain(TEXT, CONTEXT, method="decomposition")
    first, second = loaded.embed([TEXT, CONTEXT], normalize=True)
    assert explanation.value == pytest.approx(float(first @ second), abs=1e-5)
    length = loaded.explain(TEXT, method="decomposition")
    assert length.value == pytest.approx(float(np.linalg.norm(loaded.embed([TEXT])[0])), abs=1e-4)
