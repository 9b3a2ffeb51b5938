"""The folder that a training may write into, and that one training at a time does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard import locks
from regard.errors import DataError, FolderError
from regard.training.engine.loop import Stopped
from regard.training.output.metrics_log import TrainingEvent
from regard.training.pretrain import pretrain
from regard.training.result import TrainResult
from regard.training.train import train

Train = Callable[..., TrainResult]
TWO: dict[str, Any] = {"steps": 2, "dev_fraction": 0.0, "log_every": 1}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TIMEOUT", 0.0)


@pytest.mark.parametrize("more", [{}, {"resume": True}, {"overwrite": True}])
def test_a_second_training_into_the_folder_is_refused(
    small: Train, digest: Callable[[Path], str], tmp_path: Path, more: dict[str, bool]
) -> None:
    refused: list[str] = []

    def on_event(event: TrainingEvent) -> None:
        if event.kind == "log":
            for start in (lambda: small(tmp_path / "run", **TWO, **more), lambda: pretrained(tmp_path / "run")):
                with pytest.raises(FolderError) as caught:
                    start()
                refused.append(str(caught.value))

    small(tmp_path / "run", **TWO, progress=on_event)
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
        with pytest.raises(FolderError, match="is the current folder"):
            small(Path(out), **TWO, overwrite=True)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["below"]


def put(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    return path


@pytest.mark.parametrize(
    "name", ["state/notes.txt", "state", "run.json", "curves.png", "README.md", "tokenizer.json", "config.json"]
)
def test_overwrite_refuses_to_replace_what_regard_has_not_written(small: Train, tmp_path: Path, name: str) -> None:
    mine, other = put(tmp_path / "run", name), put(tmp_path / "run", "notes.txt")
    with pytest.raises(FolderError, match=f"not written by regard.*\n  {name.split('/')[0]}"):
        small(tmp_path / "run", **TWO, overwrite=True)
    assert (mine.read_text(), other.read_text()) == ("mine", "mine")


def test_overwrite_keeps_the_files_of_others(small: Train, tmp_path: Path) -> None:
    """Over a finished training, over one that was stopped, and over a folder that never held one."""
    for _ in range(2):
        remaining = [put(tmp_path / "run", name) for name in ("notes.txt", "data/rows.csv", "lexicon.model")]
        small(tmp_path / "run", **TWO, overwrite=True)
        assert {path.read_text() for path in remaining} == {"mine"}
    remaining.append(put(tmp_path / "run", "state/notes.txt"))
    with pytest.raises(FolderError, match=r"state/"):
        small(tmp_path / "run", **TWO, overwrite=True)
    remaining.pop().unlink()
    (tmp_path / "run/state").rmdir()

    def stop(event: TrainingEvent) -> None:
        if event.kind == "log":
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        small(tmp_path / "run", **TWO, overwrite=True, progress=stop)
    remaining.append(put(tmp_path / "run", "state/notes.txt"))  # into the state of a training that has not ended
    small(tmp_path / "run", **TWO, overwrite=True)
    assert {path.read_text() for path in remaining} == {"mine"}
    assert [path.name for path in (tmp_path / "run/state").iterdir()] == ["notes.txt"]


def test_what_is_put_there_while_a_training_runs_is_not_replaced(small: Train, tmp_path: Path) -> None:
    def on_event(event: TrainingEvent) -> None:
        if event.step == event.steps:
            put(tmp_path / "run", "README.md")

    with pytest.raises(FolderError, match=r"README\.md\n.*state saved before is kept.*--resume"):
        small(tmp_path / "run", **TWO, progress=on_event)
    assert (tmp_path / "run/README.md").read_text() == "mine"
    (tmp_path / "run/README.md").unlink()
    small(tmp_path / "run", **TWO, resume=True)
    assert (tmp_path / "run/README.md").read_text() != "mine"


def test_a_pretraining_leaves_the_files_of_others_beside_its_tokens(tmp_path: Path) -> None:
    """The tokenized text lies in OUT.corpus, and is removed at the end."""
    text = tmp_path / "text.txt"
    text.write_text("the old man went home.\n\nthe sea was calm that day.\n\n" * 20)
    for mine in (False, True):
        if mine:
            put(tmp_path / "run.corpus", "notes.txt")
        pretrain([text], preset="tiny-bert", out=tmp_path / "run", device="cpu", overwrite=mine, **TWO)
        assert (tmp_path / "run.corpus").exists() == mine
    assert [path.name for path in (tmp_path / "run.corpus").iterdir()] == ["notes.txt"]


def test_bad_input_leaves_no_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        train(tmp_path / "missing.csv", out=tmp_path / "runs/reviews")
    assert not any(tmp_path.iterdir())


def test_folders_that_were_there_before_are_not_removed(tmp_path: Path) -> None:
    (tmp_path / "runs/reviews").mkdir(parents=True)
    with pytest.raises(DataError):
        train(tmp_path / "missing.csv", out=tmp_path / "runs/reviews")
    with pytest.raises(DataError):
        train(tmp_path / "missing.csv", out=tmp_path / "runs/other")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["reviews"]
