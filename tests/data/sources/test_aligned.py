"""Two aligned files."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.data.helpers import fields, write_file

from regard.data.readers import read


def test_aligned_files_in_a_folder(tmp_path: Path) -> None:
    for name in ("train.en.gz", "train.de.gz"):
        write_file(tmp_path / name, gzip.compress(f"{name}\n".encode()))
    assert fields(read(tmp_path), "source", "target") == [("train.de.gz", "train.en.gz")]
    assert fields(read(tmp_path, columns={"source": "en"}), "source") == ["train.en.gz"]
