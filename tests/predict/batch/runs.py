"""Predictions of many rows, and runs that stop in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.errors import InputError
from regard.predict import Model
from regard.predict.batch.files import predict_to_file
from regard.predict.batch.rows import InputRow

WORDS = ("warm", "lovely", "dull", "cold", "the best of the year", "poor and cold", "fun")


def rows(count: int, stop: int | None = None) -> Iterator[InputRow]:
    for number in range(count):
        if number == stop:
            raise InputError("the input broke off.")
        text = " ".join(WORDS[place % len(WORDS)] for place in range(number % 9 + 1)) + f" {number}"
        yield InputRow(text, {"nr": number, "text": text})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def predict(model: Model, source: Iterator[InputRow], output: Path, **more: Any) -> Any:
    return predict_to_file(model, source, output, **{"batch_tokens": 64, **more})


def stopped(model: Model, output: Path, *, after: int = 21) -> None:
    """A run that failed and left what was complete: 16 rows here."""
    with pytest.raises(InputError, match=r"broke off\. 16 rows are kept: .* --resume") as error:
        predict(model, rows(40, stop=after), output)
    assert "16 rows are kept" in error.value.with_flags
    assert names(output.parent) == [f".{output.name}.rows.json", f".{output.name}.rows.part"]
