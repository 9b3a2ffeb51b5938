"""A position of a training that was changed or has wrong types is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.training.helpers import edit_state

from regard.errors import FolderError
from regard.training.resume.state import load_state

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
