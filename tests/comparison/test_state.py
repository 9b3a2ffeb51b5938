"""The folder of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.comparison.state import RESULTS, count_test_use, open_folder
from regard.errors import FolderError

IDENTITY = {"data": "1", "test": "2", "settings": {"steps": 3}}


def test_a_folder_is_opened_again_for_the_same_rows_only(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    open_folder(folder, IDENTITY, overwrite=False)
    open_folder(folder, IDENTITY, overwrite=False)
    with pytest.raises(FolderError, match=r"differs in: test rows, steps \(3, now not given\)\."):
        open_folder(folder, {"data": "1", "test": "3", "settings": {}}, overwrite=False)
    (folder / "models").mkdir()
    open_folder(folder, {"data": "9"}, overwrite=True)
    assert not (folder / "models").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(FolderError, match="holds no comparison"):
        open_folder(tmp_path, IDENTITY, overwrite=True)
    with pytest.raises(FolderError, match="is a file"):
        open_folder(tmp_path / "mine", IDENTITY, overwrite=False)


def test_uses_of_the_test_rows_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    open_folder(folder, IDENTITY, overwrite=False)
    assert count_test_use(folder, new_models=True) == 1
    (folder / RESULTS).write_text("{}", encoding="utf-8")
    assert count_test_use(folder, new_models=False) == 1
    assert count_test_use(folder, new_models=True) == 2
    assert not (folder / RESULTS).exists()
    assert count_test_use(folder, new_models=True) == 2
