"""The fields of a request, each checked: what was sent, what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.errors import InputError, shorten
from regard.look.reading import LookInput

MAX_CHARACTERS = 1_000_000  # of a text


class Fields:
    """The values of a JSON object, read by name and kind."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def number(self, name: str, default: int | None = None) -> int:
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f'"{name}" is {_shown(value)}, expected a whole number.')
        return value

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name, default)
        if not isinstance(value, str):
            raise InputError(f'"{name}" is {_shown(value)}, expected a text.')
        if len(value) > MAX_CHARACTERS:
            raise InputError(
                f'"{name}" has {len(value):,} characters, expected at most {MAX_CHARACTERS:,}. Give a part of it.'
            )
        return value

    def optional_text(self, name: str) -> str | None:
        """A text; None if it is missing or empty."""
        value = self.values.get(name)
        return None if value is None or value == "" else self.text(name)

    def numbers(self, name: str) -> list[int] | None:
        """A list of whole numbers; None if it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, int) for item in value):
            raise InputError(f'"{name}" is {_shown(value)}, expected a list of whole numbers.')
        return value

    def span(self, name: str) -> tuple[int, int] | None:
        """A start and an end; None if it is missing."""
        value = self.numbers(name)
        if value is None:
            return None
        if len(value) != 2:
            raise InputError(f'"{name}" is {_shown(value)}, expected a start and an end.')
        return value[0], value[1]

    def pairs(self, name: str) -> list[tuple[int, int]]:
        """A list of [layer, head]; empty if it is missing."""
        value = self.values.get(name) or []
        if not isinstance(value, list):
            raise InputError(f'"{name}" is {_shown(value)}, expected a list of [layer, head].')
        return [span for item in value if (span := Fields({name: item}).span(name)) is not None]

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty if it is missing."""
        value = self.values.get(name) or []
        if not isinstance(value, list):
            raise InputError(f'"{name}" is {_shown(value)}, expected a list of texts.')
        return [Fields({name: item}).text(name) for item in value]

    def input(self) -> LookInput:
        """The text that is looked at."""
        text = self.text("text", "")
        if not text.strip():
            raise InputError("the text is empty. Write a sentence into the field at the top.")
        return LookInput(
            text,
            self.optional_text("pair"),
            self.optional_text("target"),
            self.number("window", 0),
            tuple(self.pairs("off")),
            tuple(self.numbers("skipped") or ()),
            self.text("off_part", ""),
        )


def _shown(value: object) -> str:
    return shorten(repr(value), 80)
