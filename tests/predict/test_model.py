"""Texts and ids to vectors and logits: batched as single, as the reference, and clear where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.predict.models import TEXTS, TINY, random_checkpoint, random_rows
from tests.references import transformers

import regard
from regard.errors import FolderError
from regard.predict import Model

# saving


def test_minilm_saved_is_minilm_here_and_there(minilm: Model, theirs: Any, tmp_path: Path) -> None:
    assert minilm.save(tmp_path / "copy") == tmp_path / "copy"
    again = regard.load(tmp_path / "copy")
    assert np.array_equal(again.embed(TEXTS), minilm.embed(TEXTS))
    assert (again.pooling, again.info().parameters) == ("mean", minilm.info().parameters)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "copy")
    network = transformers.AutoModel.from_pretrained(tmp_path / "copy").eval()
    assert tokenizer(TEXTS)["input_ids"] == theirs(TEXTS)["input_ids"]
    with torch.no_grad():
        states = network(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    assert np.abs(states.numpy() - minilm.embed_tokens(TEXTS)[0]).max() < 1e-5
    assert json.loads((tmp_path / "copy" / "modules.json").read_text())[1]["path"] == "1_Pooling"


@pytest.mark.parametrize("name", TINY)
def test_saved_and_loaded_gives_the_same_outputs(name: str, tmp_path: Path) -> None:
    model = Model(random_checkpoint(name))
    model.save(tmp_path / "model")
    again = regard.load(tmp_path / "model")
    targets = random_rows([2, 5], 1) if model.config.kind == "encoder-decoder" else None
    for one, other in zip(*(m.outputs(random_rows([3, 20]), decoder_ids=targets) for m in (model, again)), strict=True):
        assert torch.equal(one.hidden, other.hidden)
        assert one.logits is None or torch.equal(one.logits, other.logits)
    assert (again.family, again.task, again.config) == (model.family, model.task, model.config)


def test_a_folder_is_not_overwritten_by_default(tmp_path: Path) -> None:
    model = Model(random_checkpoint("tiny-bert"))
    model.save(tmp_path / "model")
    with pytest.raises(FolderError, match="exists and is not empty"):
        model.save(tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    Model(random_checkpoint("tiny-gpt2")).save(tmp_path / "model", overwrite=True)
    assert regard.load(tmp_path / "model").family == "gpt2"
    assert (tmp_path / "model" / "notes.txt").read_text() == "mine"


# what it says of itself


def test_repr_needs_nothing_but_the_model(tmp_path: Path) -> None:
    model = Model(random_checkpoint("tiny-bert", {"sequence": 2}))
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    assert repr(model) == f"Model(bert, classify, {parameters:,} parameters, cpu)"
    model.save(tmp_path / "model")
    loaded = regard.load(tmp_path / "model")
    for file in (tmp_path / "model").iterdir():
        file.unlink()
    assert repr(loaded) == repr(model)
    assert repr(Model(random_checkpoint("tiny-bert"))).startswith("Model(bert, no task, ")


def test_the_folder_one_stands_in_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Model(random_checkpoint("tiny-bert")).save(tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    with pytest.raises(FolderError, match="is the current folder"):
        Model(random_checkpoint("tiny-bert")).save(".", overwrite=True)
