"""Folders of networks without attention."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from regard.checkpoint.families.bag import read, write
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.write_folder import write_folder
from regard.config import BagConfig
from regard.errors import FolderError
from regard.model.bag import BagNetwork


@pytest.mark.parametrize("family", ["ngram", "static"])
def test_a_folder_is_read_as_it_was_written(family: str, tmp_path: Path) -> None:
    config = BagConfig(7, 3, weighting="tfidf" if family == "ngram" else "mean", word_rows=2, hidden=4, dropout=0.1)
    assert read(write(config)) == config
    checkpoint = Checkpoint(family, config, BagNetwork(config, {"sequence": 2}).eval(), labels=("no", "yes"))
    write_folder(tmp_path / "model", checkpoint)
    again = read_folder(tmp_path / "model")
    assert (again.family, again.config, again.labels) == (family, config, ("no", "yes"))
    for name, weight in checkpoint.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    config = BagConfig(7, 3)
    write_folder(tmp_path / "model", Checkpoint("static", config, BagNetwork(config, {"sequence": 2}).eval()))
    file = tmp_path / "model/config.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "weighting": "sum"}))
    with pytest.raises(FolderError, match='weighting "sum" is not known'):
        read_folder(tmp_path / "model")
    file.write_text(json.dumps({**content, "width": 4}))
    with pytest.raises(FolderError, match=r"encoder\.tokens\.weight"):
        read_folder(tmp_path / "model")
