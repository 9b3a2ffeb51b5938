"""Boundaries of entities and answers."""

from __future__ import annotations

import pytest

from regard.data.check.rules.spans import starts_or_ends_inside_word


@pytest.mark.parametrize(
    ("text", "start", "end", "inside"),
    [
        ("Ada Lovelace wrote", 0, 12, False),
        ("Ada Lovelace wrote", 0, 6, True),
        ("Ada Lovelace wrote", 6, 12, True),
        ("in 1843.", 3, 7, False),
        ("東京都は日本", 0, 2, False),  # no spaces between words
    ],
)
def test_boundary_inside_a_word(text: str, start: int, end: int, inside: bool) -> None:
    assert starts_or_ends_inside_word(text, start, end) is inside
