from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.serve.helpers import TEXTS, table_of, tiny


@pytest.mark.parametrize("kind", ["vectors", "modernbert", "gpt2", "t5"])
@pytest.mark.parametrize(
    "options", [{}, {"layer": 1, "pooling": "max"}, {"pooling": "first", "normalize": True}], ids=str
)
def test_vectors_are_those_of_embed(kind: str, options: dict[str, Any]) -> None:
    with table_of(kind) as table:
        served = table.get(kind)
        futures = served.submit("embed", TEXTS, options)
        results = [future.result(20).answer for future in futures]
    vectors = np.array([answer["embedding"] for answer in results], np.float32)
    np.testing.assert_array_equal(vectors, tiny(kind).embed(TEXTS, **options))
    assert all(answer["truncated"] is False and answer["windows"] >= 1 for answer in results)
