"""Data that was read already."""

from dataclasses import replace
from typing import Any

import pytest

from regard import samples
from regard.errors import InputError
from regard.training.load_data import load_data


def test_what_was_read_is_taken_as_it_is() -> None:
    read = load_data(samples.path("messages"), seed=3)
    assert load_data(read) is read
    assert load_data(read, task="classify", labels=None, dev_fraction=0.5) is read


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"dev": "dev.csv"}, "dev"),
        ({"columns": {"text": "a"}}, "columns"),
        ({"skip_bad": "bad.txt"}, "skip_bad"),
        ({"labels": "multi"}, "labels"),
        ({"task": "tag"}, "task"),
    ],
)
def test_what_would_read_it_otherwise_is_refused(told: dict[str, Any], name: str) -> None:
    read = replace(load_data(samples.path("messages")), dev=[])
    with pytest.raises(InputError, match=f"read already.*{name}"):
        load_data(read, **told)
