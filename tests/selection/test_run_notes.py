"""A field is added to run.json, and the others stay."""

from __future__ import annotations

import json
from pathlib import Path

from regard.selection.run_notes import add_to_run, final_begun, mark_final


def test_a_field_is_added(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"task": "classify"}')
    add_to_run(tmp_path, "search", {"trials": 3})
    assert json.loads((tmp_path / "run.json").read_text()) == {"task": "classify", "search": {"trials": 3}}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_the_beginning_of_the_final_training_is_noted(tmp_path: Path) -> None:
    assert not final_begun(tmp_path)
    mark_final(tmp_path)
    assert final_begun(tmp_path)
