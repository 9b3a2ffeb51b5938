"""What the model card says is so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import QUICK

import regard
from regard import samples


def called(folder: Path) -> Any:
    """What the line of Python under "How to use it" gives."""
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert code.startswith("import regard\n")
    model = regard.load(folder, device="cpu")
    return eval(code.splitlines()[-1], {"model": model})


@pytest.mark.parametrize("task", ["classify", "pair", "answer", "tag", "embed", "translate"])
def test_a_trained_model_is_used_as_its_card_says(task: str, trained_task: Callable[[str], Path]) -> None:
    folder = trained_task(task)
    assert len(called(folder)) == 1
    card = (folder / "README.md").read_text()
    preset = "tiny-t5" if task == "translate" else "tiny-bert"
    assert f"trained from scratch (randomly initialized) with the preset `{preset}`" in card
    assert ("likely label errors" in card) == (task in ("classify", "pair", "tag"))
    assert ("greedy decoding" in card) == (task == "translate")
    assert ('f1 is that of the label "yes".' in card) == (task == "pair")


@pytest.mark.parametrize(("objective", "preset"), [("mlm+nsp", "tiny-bert"), ("causal", "tiny-gpt2")])
def test_a_pretrained_model_is_used_as_its_card_says(
    objective: Any, preset: str, pretrained_folder: Any, tmp_path: Path
) -> None:
    corpus = samples.path("corpus")
    folder = pretrained_folder([corpus], objective=objective, preset=preset, **QUICK)
    assert called(folder)
    regard.pretrain([corpus], out=tmp_path / "more", objective=objective, start=folder, **QUICK)
    assert f"trained from the weights of `{folder}` on" in (tmp_path / "more/README.md").read_text()


def test_the_card_says_whether_transformers_opens_the_folder(
    trained_task: Callable[[str], Path], trained_folder: Any
) -> None:
    """The family and the task must both be known to transformers."""
    folders = (trained_task("classify"), trained_folder(samples.path("messages"), preset="ngram"))
    known, unknown = ((folder / "README.md").read_text() for folder in folders)
    assert "library_name: transformers" in known
    assert "The folder also opens with `from_pretrained` of transformers." in known
    assert "library_name: regard" in unknown
    assert "transformers cannot open this folder" in unknown
