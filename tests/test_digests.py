"""Damage to files and to JSON objects is noticed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from regard.digests import describe_damage, file_digests, has_valid_digest, with_digest


def test_a_file_that_changed_is_missing_or_no_file_is_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    digests = file_digests(tmp_path, ["one", "two"])
    assert describe_damage(tmp_path, digests) is None
    (tmp_path / "two").write_bytes(b"twO" + b"two" * 999)
    assert (
        describe_damage(tmp_path, digests)
        == f"{tmp_path / 'two'} is damaged: its content has changed since it was written"
    )
    (tmp_path / "two").write_bytes(b"two")
    assert describe_damage(tmp_path, digests) == f"{tmp_path / 'two'} is damaged: it has 3 bytes, expected 3000"
    (tmp_path / "one").unlink()
    assert describe_damage(tmp_path, digests) == f"{tmp_path / 'one'} is missing"
    os.mkfifo(tmp_path / "one")  # would block whoever reads it
    assert "is damaged" in (describe_damage(tmp_path, digests) or "")
    digests["one"]["bytes"] = 0
    assert "is not a regular file" in (describe_damage(tmp_path, digests) or "")
    assert describe_damage(tmp_path, {"one": None}) == f"there is no digest of {tmp_path / 'one'}"


def test_an_object_is_what_was_sealed_however_it_is_written() -> None:
    content = with_digest({"b": [1, 2.5, None], "a": {"ü": "\ud800", 3: (1, 2)}, "n": float("nan")})
    again = json.loads(json.dumps(content, indent=7))
    assert has_valid_digest(again)
    assert with_digest({name: again[name] for name in again if name != "digest"})["digest"] == content["digest"]


@pytest.mark.parametrize("change", [{"a": 2}, {"a": True}, {"a": 1.0}, {"b": 1}, {"digest": None}, {"digest": "0"}])
def test_any_change_breaks_the_seal(change: dict[str, object]) -> None:
    assert not has_valid_digest({**with_digest({"a": 1}), **change})
