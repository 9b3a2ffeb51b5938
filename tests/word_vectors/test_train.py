"""From text to vectors: each kind learns what was planted."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.errors import InputError
from regard.progress import Progress
from regard.word_vectors.train import KINDS, VectorSettings, train_vectors
from regard.word_vectors.vectors import total_score

THINGS, FORMS = 8, 3


def _mostly(default: int, others: int, draw: random.Random) -> int:
    return default if draw.random() < 0.8 else draw.randrange(others)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of a word "t2f1", marks of its thing and marks of its form, shuffled: t2f1 − t2f0 + t5f0 is t5f1.

    One mark in five is of any thing or form: GloVe learns from how counts differ, not from what never meets.
    """
    draw = random.Random(0)
    lines = []
    for _ in range(6000):
        thing, form = draw.randrange(THINGS), draw.randrange(FORMS)
        line = [f"t{thing}f{form}"]
        line += [f"thing{_mostly(thing, THINGS, draw)}m{draw.randrange(4)}" for _ in range(3)]
        line += [f"form{_mostly(form, FORMS, draw)}m{draw.randrange(4)}" for _ in range(3)]
        draw.shuffle(line)
        lines.append(" ".join(line))
    path = tmp_path_factory.mktemp("planted") / "text.txt"
    path.write_text("\n".join(lines))
    return path


def questions() -> dict[str, list[Any]]:
    return {
        f"{f} and {g}": [
            (f"t{t}f{f}", f"t{t}f{g}", f"t{u}f{f}", f"t{u}f{g}") for t in range(THINGS) for u in range(THINGS) if t != u
        ]
        for f in range(FORMS)
        for g in range(FORMS)
        if f != g
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns_planted_analogies(kind: Any, planted: Path) -> None:
    epochs, rate = (30, 0.3) if kind == "glove" else (8, 0.1)
    settings = VectorSettings(kind=kind, width=24, window=6, epochs=epochs, lr=rate, subsample=0)
    result = train_vectors([planted], settings)
    score = total_score(result.vectors.analogies(questions()))
    assert score.known == score.total
    assert score.accuracy > 0.8
    assert result.words_read == result.words_kept == 6000 * 7


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_vectors(kind: Any, planted: Path) -> None:
    settings = VectorSettings(kind=kind, width=8, epochs=1, max_words=5000)
    one, same = (train_vectors([planted], settings) for _ in range(2))
    assert np.array_equal(one.vectors.table, same.vectors.table)
    assert one.words_read == 5000


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_is_reported_to_its_end(kind: Any, planted: Path) -> None:
    stages: dict[str, Progress] = {}
    train_vectors(
        [planted],
        VectorSettings(kind=kind, width=8, epochs=1, subsample=0),
        progress=lambda report: stages.update({report.stage: report}),
    )
    assert next(iter(stages)) == "bytes read"
    assert all(last.total is not None and last.done == last.total > 0 for last in stages.values())
    assert len(stages) == (3 if kind == "glove" else 2)


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(InputError, match='Did you mean "skipgram"'):
        VectorSettings(kind="skipgrm")  # type: ignore[arg-type]  # on purpose
