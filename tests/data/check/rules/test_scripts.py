"""The script of a text is that of most letters."""

from __future__ import annotations

import pytest

from regard.data.check.rules.scripts import script_of


@pytest.mark.parametrize(
    ("text", "script"),
    [("hello there", "Latin"), ("привет всем", "Cyrillic"), ("日本の首都", "Japanese kana"), ("12 34", None)],
)
def test_script(text: str, script: str | None) -> None:
    assert script_of(text) == script
