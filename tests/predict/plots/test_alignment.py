"""A picture of alignments."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.predict.plots.alignment import draw_alignments
from regard.predict.translation import Alignment

ALIGNMENT = Alignment(("▁ein", "▁Wort"), ("▁a", "▁word", "."), ((0.9, 0.1), (0.1, 0.9), (0.5, 0.5)))


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_the_suffix_decides_the_format(tmp_path: Path, name: str, start: bytes) -> None:
    draw_alignments([ALIGNMENT, ALIGNMENT], tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]
