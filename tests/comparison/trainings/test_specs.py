"""What the name of a model means."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.comparison.trainings.specs import ModelSpec, model_spec


@pytest.mark.parametrize(
    ("name", "kind", "preset", "start"),
    [
        ("ngram", "baseline", "ngram", None),
        ("probe:bert-mini", "baseline", "probe", "bert-mini"),
        ("bert-mini", "from scratch", "bert-mini", None),
        ("preset:bert-base-uncased", "from scratch", "bert-base-uncased", None),
        ("start:bert-mini", "fine-tuned", None, "bert-mini"),
        ("minilm", "fine-tuned", None, "minilm"),
    ],
)
def test_names(name: str, kind: str, preset: str | None, start: str | None) -> None:
    assert model_spec(name, task="classify", labels=None) == ModelSpec(name, kind, preset, start)


def test_folders_are_loaded_or_fine_tuned(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a small text\n" * 30, encoding="utf-8")
    regard.pretrain([tmp_path / "t.txt"], preset="tiny-bert", out=tmp_path / "language", steps=1)
    spec = model_spec(str(tmp_path / "language"), task="classify", labels=None)
    assert (spec.name, spec.kind, spec.start) == ("language", "fine-tuned", str(tmp_path / "language"))


def test_a_trained_folder_that_fits_is_loaded(trained: dict[str, Path]) -> None:
    assert model_spec(str(trained["good"]), task="classify", labels=["warm", "cold"]).kind == "loaded"


def test_the_slug_is_a_folder_name() -> None:
    assert ModelSpec("org/some model", "fine-tuned").slug == "org-some-model"
