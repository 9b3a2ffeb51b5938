"""Models loaded from folders, with or without a tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.predict.models import random_checkpoint

import regard
from regard.checkpoint.source import minilm_folder
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random_checkpoint("tiny-bert"))
    with pytest.raises(FolderError, match=f"{tmp_path}/model has no tokenizer: expected tokenizer.json"):
        regard.load(tmp_path / "model").embed(["a"])
    (tmp_path / "model" / "spiece.model").write_bytes(b"x")
    with pytest.raises(FolderError, match=r"It has spiece.model, which transformers converts into a tokenizer.json"):
        regard.load(tmp_path / "model").embed(["a"])


def test_a_tokenizer_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random_checkpoint("tiny-bert"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "model" / name).symlink_to(minilm_folder() / name)
    with pytest.raises(FolderError, match=r'"tokenizer(_config)?\.json" is a link out of the folder'):
        regard.load(tmp_path / "model")
