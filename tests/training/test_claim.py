"""The folder that a training may write into, and that one training at a time does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard import locks
from regard.errors import FolderError
from regard.training.pretrain import pretrain
from regard.training.record import Event
from regard.training.run import Result

Train = Callable[..., Result]
TWO: dict[str, Any] = {"steps": 2, "dev_share": 0.0, "log_every": 1}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.0)


@pytest.mark.parametrize("more", [{}, {"resume": True}, {"overwrite": True}])
def test_a_second_training_into_the_folder_is_refused(
    small: Train, digest: Callable[[Path], str], tmp_path: Path, more: dict[str, bool]
) -> None:
    refused: list[str] = []

    def tell(event: Event) -> None:
        if event.kind == "log":
            for start in (lambda: small(tmp_path / "run", **TWO, **more), lambda: pretrained(tmp_path / "run")):
                with pytest.raises(FolderError) as caught:
                    start()
                refused.append(str(caught.value))

    small(tmp_path / "run", **TWO, tell=tell)
    assert len(refused) == 4
    assert all(f"{tmp_path / 'run'} is being trained by process {os.getpid()} on " in words for words in refused)
    small(tmp_path / "whole", **TWO)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "whole"]


def pretrained(out: Path) -> None:
    pretrain(["nothing.txt"], preset="tiny-bert", out=out, overwrite=True, **TWO)


def test_the_folder_one_stands_in_is_refused_before_anything_is_read(
    small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run/below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run/below")
    for out in (".", "..", tmp_path / "run"):
        with pytest.raises(FolderError, match="the folder you stand in"):
            small(Path(out), **TWO, overwrite=True)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["below"]
