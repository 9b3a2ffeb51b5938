"""Values of large JSON lists, one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.helpers import write_file

from regard.data.readers import read
from regard.errors import DataError


def test_json_of_very_many_parts(tmp_path: Path) -> None:
    text = '{"text": "x", "label": "y", "more": [' + "{}," * 4_000_001 + "{}]}"
    for name, content in (("a.jsonl", text + "\n"), ("a.json", f"[{text}]")):
        path = write_file(tmp_path / name, content)
        with pytest.raises(DataError, match=r"more than 4,000,000 lists and objects|no readable row"):
            list(read(path))
