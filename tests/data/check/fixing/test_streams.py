"""NUL and halves of surrogate pairs are removed from a stream."""

from __future__ import annotations

import json
from pathlib import Path

from tests.data.helpers import write_file

from regard.data.check.fixing.fixed_copy import write_fixed_copy


def test_halves_of_pairs_are_removed_and_whole_pairs_kept(tmp_path: Path) -> None:
    lines = '{"text": "bad \\ud83d end", "label": "a"}\n{"text": "good \\ud83d\\ude00 end \\\\ud83d", "label": "b"}\n'
    done = write_fixed_copy(write_file(tmp_path / "a.jsonl", lines), tmp_path / "b.jsonl")
    texts = [json.loads(line)["text"] for line in (tmp_path / "b.jsonl").read_text(encoding="utf-8").splitlines()]
    assert texts == ["bad  end", "good 😀 end \\ud83d"]
    assert dict(done.changes) == {"NUL characters or halves of surrogate pairs removed": 1}
