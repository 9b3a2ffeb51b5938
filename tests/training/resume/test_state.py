"""A saved training state that is damaged, incomplete or of another training is refused."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.training.helpers import LONG, Digest, Train, edit_state

from regard.digests import file_digests
from regard.errors import FolderError, InputError
from regard.training.engine import loop
from regard.training.engine.loop import Stopped
from regard.training.output.metrics_log import TrainingEvent
from regard.training.resume.state import check_same, load_state


def flip(path: Path, *, bit: int) -> None:
    content = bytearray(path.read_bytes())
    bit %= 8 * len(content)
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@pytest.mark.parametrize("bit", [5, -4])
@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "best.safetensors"])
def test_a_flipped_bit_in_a_state_is_refused(stopped: Path, name: str, bit: int) -> None:
    flip(stopped / "state" / name, bit=bit)
    with pytest.raises(FolderError, match=rf"state/{name} is damaged.*backup.*--overwrite"):
        load_state(stopped, {})
    assert (stopped / "state" / name).exists(), "a refused state is kept"


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "best.safetensors"])
def test_a_file_of_the_state_that_is_missing_is_named(stopped: Path, name: str) -> None:
    (stopped / "state" / name).unlink()
    with pytest.raises(FolderError, match=rf"state/{name} is missing.*--overwrite"):
        load_state(stopped, {})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("weights.safetensors", b""),
        ("state.json", b"{}"),
        ("state.json", b"[]"),
        ("weights.safetensors", "optimizer.safetensors"),
        ("optimizer.safetensors", "weights.safetensors"),
    ],
)
def test_a_state_that_is_damaged(stopped: Path, name: str, content: bytes | str) -> None:
    state = stopped / "state"
    (state / name).write_bytes(content if isinstance(content, bytes) else (state / content).read_bytes())
    with pytest.raises(FolderError, match=name):
        load_state(stopped, {})


@pytest.mark.parametrize("name", ["position", "identity", "files"])
@pytest.mark.parametrize("value", [None, "text"])
def test_parts_of_wrong_types_are_refused(stopped: Path, name: str, value: Any) -> None:
    edit_state(stopped, lambda content: content.update({name: value}), new_digest=True)
    with pytest.raises(FolderError, match=rf"{name}.*--overwrite"):
        load_state(stopped, {})


def test_fields_that_are_missing_or_unknown_are_refused(stopped: Path) -> None:
    edit_state(stopped, lambda content: content["position"].update(other=1), new_digest=True)
    with pytest.raises(FolderError, match=r"position\.other is not known"):
        load_state(stopped, {})
    edit_state(
        stopped, lambda content: (content["position"].pop("other"), content["position"].pop("worse")), new_digest=True
    )
    with pytest.raises(FolderError, match=r"position\.worse is missing"):
        load_state(stopped, {})


def test_a_state_of_another_network_or_version_is_refused(small: Train, stopped: Path) -> None:
    state = stopped / "state"
    (state / "weights.safetensors").write_bytes((state / "optimizer.safetensors").read_bytes())
    names = ("weights.safetensors", "optimizer.safetensors", "best.safetensors")
    edit_state(stopped, lambda content: content.update(files=file_digests(state, names)), new_digest=True)
    with pytest.raises(FolderError, match="belongs to another network"):
        small(stopped, **LONG, resume=True)
    edit_state(stopped, lambda content: content.update(format=3), new_digest=True)
    with pytest.raises(FolderError, match="has format 3, expected 2: it was written by another version"):
        small(stopped, **LONG, resume=True)
    edit_state(stopped, lambda content: content["files"].update({"../../secret": "0"}), new_digest=True)
    with pytest.raises(FolderError):
        small(stopped, **LONG, resume=True)


def as_older_version(folder: Path) -> None:
    edit_state(folder, lambda content: [content.pop(name) for name in ("format", "files", "digest")])


def test_a_state_of_an_older_version_goes_on_and_is_called_unchecked(
    whole: Path, small: Train, digest: Digest, stopped: Path
) -> None:
    as_older_version(stopped)
    events: list[TrainingEvent] = []
    small(stopped, **LONG, resume=True, progress=events.append)
    assert loop.UNCHECKED in [event.values.get("text") for event in events]
    assert digest(stopped) == digest(whole)


def test_a_state_of_an_older_version_without_its_best_weights_is_refused(small: Train, stopped: Path) -> None:
    as_older_version(stopped)
    (stopped / "state/best.safetensors").unlink()
    with pytest.raises(FolderError, match=r"best\.safetensors is missing"):
        small(stopped, **LONG, resume=True)


def test_best_weights_are_linked_with_the_digest_they_were_written_with(small: Train, stopped: Path) -> None:
    """Damaged between two saves, they are found at the next resume, although they were not written again."""
    path = stopped / "state/best.safetensors"

    def on_event(event: TrainingEvent) -> None:
        if event.kind == "log" and event.step == 10:
            flip(path, bit=9000)
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        small(stopped, **{**LONG, "log_every": 1}, eval_every=0, resume=True, progress=on_event)
    with pytest.raises(FolderError, match=r"best\.safetensors is damaged"):
        small(stopped, **LONG, resume=True)


def test_a_setting_of_a_later_version_counts_as_its_default(tmp_path: Path) -> None:
    check_same(tmp_path, {"lr": 0.1}, {"lr": 0.1, "overlap": 0.25})
    with pytest.raises(InputError, match=r"overlap: 0\.25 then, 0\.5 now"):
        check_same(tmp_path, {"lr": 0.1}, {"lr": 0.1, "overlap": 0.5})


WRONG: list[tuple[str, Any]] = [
    ("step", -1),
    ("step", 1.5),
    ("step", True),
    ("step", "9"),
    ("tokens", 10**400),
    ("seconds", None),
    ("seconds", float("inf")),
    ("best", "good"),
    ("guard", [1.0]),
    ("guard", {}),
    ("losses", ["a", "b"]),
    ("losses", None),
]


def test_a_position_that_was_changed_is_refused(stopped: Path) -> None:
    edit_state(stopped, lambda content: content["position"].update(step=8))
    with pytest.raises(
        FolderError, match=r"state\.json is damaged: its content does not match its digest.*--overwrite"
    ):
        load_state(stopped, {})


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_position_of_wrong_types_is_refused(stopped: Path, name: str, value: Any) -> None:
    edit_state(stopped, lambda content: content["position"].update({name: value}), new_digest=True)
    with pytest.raises(FolderError, match=rf"position\.{name} is .*, expected .*--overwrite"):
        load_state(stopped, {})
