"""Pages are readable in the dark and on a phone."""

from __future__ import annotations

from regard.lessons.style import STYLE


def test_the_style_has_both_and_loads_nothing() -> None:
    assert "prefers-color-scheme: dark" in STYLE
    assert "max-width: 520px" in STYLE
    assert "url(" not in STYLE
