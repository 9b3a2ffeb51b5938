"""Translations come back from every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.data.helpers import LINE, fields, same_folder, write_file

from regard.data.readers import read


@same_folder
@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=6))
def test_translations_come_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    assume(not rows[0][0].startswith("\ufeff") and not rows[0][1].startswith("\ufeff"))
    first = write_file(tmp_path / "a.en", "".join(f"{source}\n" for source, _ in rows))
    second = write_file(tmp_path / "a.de", "".join(f"{target}\n" for _, target in rows))
    objects = [{"translation": {"en": source, "de": target}} for source, target in rows]
    lines = write_file(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in objects))
    tabs = write_file(tmp_path / "a.tsv", "".join(f"{source}\t{target}\n" for source, target in [("en", "de"), *rows]))
    sources: list[tuple[Any, dict[str, Any]]] = [((first, second), {}), (f"{first},{second}", {}), (lines, {})]
    for where, options in (*sources, (tabs, {"quoting": False})):
        result = read(where, **options)
        assert dict(result.schema.columns, translation="") == {"source": "en", "target": "de", "translation": ""}
        assert fields(result, "source", "target") == rows
    swapped = read((first, second), columns={"source": "de"})
    assert fields(swapped, "target", "source") == rows
    assert fields(read(lines, columns={"source": "de", "target": "en"}), "target", "source") == rows
