"""Scripts by letters, languages by function words."""

from __future__ import annotations

from regard.data.check.rules.languages import language_of, script_of


def test_scripts_and_languages() -> None:
    assert script_of("hello there") == "Latin"
    assert script_of("привет всем") == "Cyrillic"
    assert script_of("12 34") is None
    assert language_of("the cat is on the table and it was not there") == "English"
    assert language_of("el perro está en la casa y no quiere salir con los niños") == "Spanish"
    assert language_of("Aspirin Paracetamol Ibuprofen") is None
