"""Texts of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.look.tiny_models import TEXT, model

from regard.errors import InputError
from regard.look.dataset.faithfulness import faithfulness
from regard.look.dataset.items import DataItem, read_items, sample_rows
from regard.look.dataset.word_importance import word_importance


def test_texts_are_read_from_lists_and_files(loaded: Any, reviews_csv: Path) -> None:
    assert read_items(loaded, ["one text", "two"]) == [DataItem("one text"), DataItem("two")]
    items = read_items(loaded, reviews_csv, max_rows=7)
    assert len(items) == 7
    assert {item.label for item in items} <= {"good", "bad"}
    assert sample_rows(range(10), 5) == sorted(sample_rows(range(10), 5))
    assert sample_rows([3, 1], 5) == [3, 1]


def test_errors_say_what_is_missing(loaded: Any) -> None:
    with pytest.raises(InputError, match="two words"):
        faithfulness(loaded, ["film"], ["occlusion"])
    with pytest.raises(InputError, match="at least 1"):
        read_items(loaded, ["a"], max_rows=0)
    with pytest.raises(InputError, match="no classes"):
        word_importance(model("tiny-bert", {"token": 3}), [TEXT])
