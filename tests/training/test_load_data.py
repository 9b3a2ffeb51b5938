"""Data that was read already."""

from dataclasses import replace
from typing import Any

import pytest

from regard import samples
from regard.errors import InputError
from regard.training.load_data import gather


def test_what_was_read_is_taken_as_it_is() -> None:
    read = gather(samples.path("messages"), seed=3)
    assert gather(read) is read
    assert gather(read, task="classify", labels=None, dev_fraction=0.5) is read


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
    read = replace(gather(samples.path("messages")), dev=[])
    with pytest.raises(InputError, match=f"read already.*{name}"):
        gather(read, **told)
