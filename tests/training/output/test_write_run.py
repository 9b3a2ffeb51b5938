"""The files of a finished training."""

from __future__ import annotations

import errno
import json
import platform
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.training.inputs import run_context, training_inputs

import regard
from regard.checkpoint.folder import read_folder
from regard.errors import FolderError
from regard.text.tokenizer import Tokenizer
from regard.training.output.write_run import run_json, write_run
from regard.training.pipeline import fit_and_score, plan_training
from regard.training.run import TrainedRun


@pytest.fixture
def run(tmp_path: Path) -> TrainedRun:
    """A training of two steps that is not written yet."""
    context, inputs = run_context(tmp_path / "run"), training_inputs(save_every=1)
    return fit_and_score(context, inputs, plan_training(context, inputs))


def test_run_json_has_settings_data_and_scores(run: TrainedRun) -> None:
    info = run_json(run)
    assert run.scores is not None
    assert info["regard"] == regard.__version__
    assert (info["task"], info["start"], info["tokenizer"]) == ("classify", "tiny-bert", ["word list"])
    assert info["task_settings"]["labels"] == ["no", "yes"]
    assert info["settings"]["lr"] == 1e-3
    hashes = info["data"].pop("row_hashes").split()
    assert len(set(hashes)) == 12
    assert info["data"] == {
        "recognized": "sixteen rows",
        "train_rows": 12,
        "dev_rows": 4,
        "dev_split_off": True,
        "hash": "0123",
    }
    assert info["scores"]["accuracy"] == asdict(run.scores.scores["accuracy"])
    assert info["main"] == run.scores.main
    assert info["done"]["steps"] == 2
    assert info["versions"] == {"python": platform.python_version(), "torch": torch.__version__}
    assert info["device"] == "cpu"
    assert info["pretrained"] is False
    assert json.loads(json.dumps(info)) == info


def test_a_run_without_validation_has_no_scores(run: TrainedRun) -> None:
    info = run_json(replace(run, scores=None))
    assert (info["scores"], info["main"], info["signatures"]) == ({}, None, {})


def test_the_folder_holds_the_trained_model(run: TrainedRun) -> None:
    folder = run.context.folder
    assert (folder / "state").is_dir()
    write_run(run)
    assert not (folder / "state").exists()
    written, expected = json.loads((folder / "run.json").read_text()), run_json(run)
    assert 0 < written.pop("seconds") <= expected.pop("seconds")
    assert written == expected
    assert (folder / "README.md").read_text().startswith("---")
    assert len((folder / "metrics.jsonl").read_text().splitlines()) > 0
    weights = read_folder(folder).network.state_dict()
    for name, tensor in run.job.network.state_dict().items():
        assert torch.equal(weights[name], tensor), name
    assert Tokenizer.load(folder).encode("a good day").ids == run.inputs.model.tokenizer.encode("a good day").ids
    assert load_file(folder / "model.safetensors")


def test_a_disk_that_is_full_leaves_the_state(run: TrainedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run.context.folder

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("regard.training.output.write_run.write_json", full)
        with pytest.raises(FolderError, match=r"No space left.*The state saved before is kept: fix that.*--resume"):
            write_run(run)
    assert (folder / "state").is_dir()
    assert not (folder / "model.safetensors").exists()
    write_run(run)
    assert (folder / "model.safetensors").is_file()
