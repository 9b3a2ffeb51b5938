"""A short training of every task, for the page and the model card of its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard import samples

QUICK: dict[str, Any] = {"device": "cpu", "batch_tokens": 512, "steps": 2}
SAMPLES = {"classify": "messages", "answer": "questions", "tag": "places", "translate": "english-spanish"}
KINDS = {"multi": "multi", "number": "number"}  # kinds of labels, by the name of a training


def rows_of(name: str) -> str:
    """Sixty rows as CSV."""
    numbers = range(60)
    if name == "multi":
        rows = ["text,label", *(f"word {n} and word {n % 5},{'red|round' if n % 3 else 'round'}" for n in numbers)]
    elif name == "number":
        rows = ["text,label", *(f"word {n} and word {n % 5},{n / 7:.3f}" for n in numbers)]
    elif name == "pair":
        rows = ["sentence1,sentence2,label", *(f"one {n},two {n % 3},{'yes' if n % 2 else 'no'}" for n in numbers)]
    else:
        rows = ["sentence1,sentence2", *(f"one {n},two {n % 3}" for n in numbers)]
    return "\n".join(rows)


@pytest.fixture
def trained_task(trained_folder: Any, tmp_path: Path) -> Callable[[str], Path]:
    """The folder of a training of a task, or of "multi" or "number" labels."""

    def train(name: str) -> Path:
        if name in SAMPLES:
            data = samples.path(SAMPLES[name])
        else:
            data = tmp_path / f"{name}.csv"
            data.write_text(rows_of(name))
        task = "classify" if name in KINDS else name
        preset = "tiny-t5" if name == "translate" else "tiny-bert"
        folder: Path = trained_folder(data, task=task, labels=KINDS.get(name), preset=preset, **QUICK)
        return folder

    return train
