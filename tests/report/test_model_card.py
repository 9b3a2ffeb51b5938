"""What the model card says is so."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import regard
from regard import samples
from regard.checkpoint.families import family_for
from regard.report.model_card import _front_matter, _opens
from regard.tasks.classify import Classify

QUICK: dict[str, Any] = {"device": "cpu", "batch_tokens": 512, "steps": 1}


def called(folder: Path) -> Any:
    """What the line of Python under "How to use it" gives."""
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert code.startswith("import regard\n")
    model = regard.load(folder, device="cpu")
    return eval(code.splitlines()[-1], {"model": model})


@pytest.mark.parametrize("task", ["classify", "pair", "answer", "tag", "embed", "translate"])
def test_a_trained_model_is_used_as_its_card_says(task: str, tmp_path: Path) -> None:
    for name, columns in {"pairs": "sentence1,sentence2", "labeled": "sentence1,sentence2,label"}.items():
        rows = [(f"one {number}", f"two {number % 3}", "yes" if number % 2 else "no") for number in range(20)]
        cells = [columns, *(",".join(row[: columns.count(",") + 1]) for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(cells))
    data = {
        "classify": samples.path("messages"),
        "pair": tmp_path / "labeled.csv",
        "answer": samples.path("questions"),
        "tag": samples.path("places"),
        "embed": tmp_path / "pairs.csv",
        "translate": samples.path("english-spanish"),
    }[task]
    preset = "tiny-t5" if task == "translate" else "tiny-bert"
    regard.train(data, out=tmp_path / "run", task=task, preset=preset, **QUICK)
    assert len(called(tmp_path / "run")) == 1
    card = (tmp_path / "run/README.md").read_text()
    assert f"trained from scratch (randomly initialized) with the preset `{preset}`" in card
    assert ("likely label errors" in card) == (task in ("classify", "pair", "tag"))
    assert ("greedy decoding" in card) == (task == "translate")
    assert ('f1 is that of the label "yes".' in card) == (task == "pair")


@pytest.mark.parametrize("objective", ["mlm+nsp", "causal"])
def test_a_pretrained_model_is_used_as_its_card_says(objective: Any, tmp_path: Path) -> None:
    preset = {"causal": "tiny-gpt2"}.get(objective, "tiny-bert")
    corpus = samples.path("corpus")
    regard.pretrain([corpus], out=tmp_path / "run", objective=objective, preset=preset, **QUICK)
    assert called(tmp_path / "run")
    regard.pretrain([corpus], out=tmp_path / "more", objective=objective, start=tmp_path / "run", **QUICK)
    assert f"trained from the weights of `{tmp_path / 'run'}` on" in (tmp_path / "more/README.md").read_text()


def test_a_task_says_itself_whether_transformers_opens_its_models(tmp_path: Path) -> None:
    """The family and the task must both be known to transformers."""

    class Unknown(Classify):
        in_transformers: ClassVar[bool] = False

    regard.train(samples.path("messages"), out=tmp_path / "run", preset="tiny-bert", **QUICK)
    checkpoint = regard.load(tmp_path / "run", device="cpu").checkpoint
    family = family_for(checkpoint.family, checkpoint.config)
    card = (tmp_path / "run/README.md").read_text()
    assert "library_name: transformers" in card
    assert "The folder also opens with `from_pretrained` of transformers." in card
    assert _front_matter(Unknown, family)[1] == "library_name: regard"
    assert _opens(Unknown, family).startswith("transformers cannot open this folder: it has no class for this task")
