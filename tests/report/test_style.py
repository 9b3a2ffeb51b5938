"""The style sheet."""

from __future__ import annotations

import re

from regard.report.style import STYLE


def test_every_color_has_a_dark_one_and_nothing_is_loaded() -> None:
    light, dark = (set(re.findall(r"(--\w+):", block)) for block in STYLE.split("prefers-color-scheme: dark", 1))
    assert {name for name in light if name not in ("--c", "--v")} <= dark
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert STYLE.count("{") == STYLE.count("}")
