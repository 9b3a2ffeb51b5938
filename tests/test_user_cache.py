"""A folder in the user's cache, and none where it cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.user_cache import user_cache


def test_the_folder_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = user_cache("lessons", "one")
    assert folder == tmp_path / "regard" / "lessons" / "one"
    assert folder.is_dir()


def test_none_if_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    assert user_cache("lessons") is None
