"""What the name of a model means."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.comparison.trainings.specs import ModelSpec, model_spec, model_specs
from regard.errors import InputError


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


def test_a_trained_folder_must_fit(trained: dict[str, Path]) -> None:
    folder = str(trained["good"])
    assert model_spec(folder, task="classify", labels=["warm", "cold"]).kind == "loaded"
    with pytest.raises(InputError, match="good is a model for classify, but the data is for tag"):
        model_spec(folder, task="tag", labels=None)
    with pytest.raises(InputError, match='Only in the data: "hot"'):
        model_spec(folder, task="classify", labels=["hot", "cold"])


def test_a_large_name_must_say_which() -> None:
    with pytest.raises(InputError, match="start:bert-base-uncased"):
        model_spec("bert-base-uncased", task="classify", labels=None)


def test_a_baseline_for_another_task() -> None:
    with pytest.raises(InputError, match="the baseline probe is for classify, pair, but the task is tag"):
        model_spec("probe", task="tag", labels=None)


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match='Did you mean "ngram"'):
        model_specs(["ngramm"], task="classify", labels=None)


def test_the_slug_is_a_folder_name() -> None:
    assert ModelSpec("org/some model", "fine-tuned").slug == "org-some-model"


def test_names_are_separated_with_blanks() -> None:
    with pytest.raises(InputError, match="Separate names with blanks: ngram static"):
        model_spec("ngram,static", task="classify", labels=None)
