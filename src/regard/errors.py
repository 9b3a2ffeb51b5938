"""Messages that say what was given, what was expected, and the way to fix it."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable

MOST_COMPARED = 3000  # names a word is compared with
MOST_NAMED = 60  # names in a message
LONGEST_WORD = 100  # characters of a name in a message
MARKED = re.compile("\x02([^\x02\x03\x1f]*)\x1f([^\x02\x03\x1f]*)\x03")  # a setting: in Python, on the command line
NO_VALUE = object()


def setting(name: str, value: object = NO_VALUE) -> str:
    """A setting inside the message of an error: `name` or `name=value`; the command line shows `--name value`.

    raise InputError(f"{setting('lr')} is {lr}, expected more than 0.")
    raise InputError(f"{setting('epochs', 2)} and {setting('steps', 9)} were both given.")
    """
    flag = f"--{name.replace('_', '-')}"
    if value is NO_VALUE:
        return f"\x02{name}\x1f{flag}\x03"
    if isinstance(value, float):
        shown = typed = f"{value:g}"
    else:
        shown, typed = shorten(repr(value), 80), shorten(str(value), 80)
    given = flag if value is True else f"{flag} {typed}"
    return f"\x02{name}={shown}\x1f{given}\x03"


LONGEST_MESSAGE = 2000  # characters
LONGEST_QUOTE = 400  # characters in quotes; longer ones are cut, which commands and paths are not
_QUOTES = re.compile(rf"""(["'])((?:(?!\1)[^\n]){{{LONGEST_QUOTE},}})\1""")
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: f"\\u{code:04x}" for code in _CONTROLS if chr(code) not in "\n\t"}


class RegardError(Exception):
    """Anything a user can fix. The command line prints it without a traceback and exits with 1.

    `str(error)` names settings as Python does (`dev_fraction`); `error.with_flags` as flags (`--dev-fraction`).
    Both are cut to a length that can be read, and show control characters instead of sending them.
    """

    def __init__(self, message: object = "", *rest: object) -> None:
        self.with_flags = shorten_message(escape_control_characters(MARKED.sub(r"\2", str(message))))
        super().__init__(shorten_message(escape_control_characters(MARKED.sub(r"\1", str(message)))), *rest)


class InputError(RegardError, ValueError):
    """A value, a text or a setting that cannot be used."""


class DataError(RegardError, ValueError):
    """A file of data, or one row of it, that cannot be used: where it is, what it holds, what belongs there."""

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.message, self.file, self.line, self.row = message, file, line, row
        self.column, self.expected, self.fix = column, expected, fix
        numbers = [("line", line), ("row", row), ("column", column)]
        where = ", ".join(f"{name} {number}" for name, number in numbers if number is not None)
        head = " ".join(part for part in (file, where) if part)
        tail = "" if expected is None else f"; expected {expected}"
        super().__init__(f"{head}{': ' if head else ''}{message}{tail}.{'' if fix is None else ' ' + fix}")


class NotFinite(InputError):
    """A network computed NaN or infinity for an input."""

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"the network computed NaN or infinity for {subject}, so there is no result. Its numbers are too large for "
            f"their format (use {setting('dtype', 'fp32')}), or its weights are damaged (use another checkpoint)."
        )


class FolderError(RegardError, OSError):
    """A model folder that cannot be read, or a place that cannot be written."""


class MissingExtra(RegardError, ImportError):
    """A feature whose optional packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs an optional package. Install it with: pip install "regard[{extra}]"')


class UntrainedWarning(UserWarning):
    """A model whose weights are randomly initialized is about to be used."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """` Did you mean "x"?` when a choice is near, else the choices themselves, as many as fit into a message."""
    known = sorted(choices)
    word = name[:LONGEST_WORD].casefold()
    folded = {name.casefold(): name for name in known}
    if len(folded) > MOST_COMPARED:  # comparing takes a tenth of a millisecond each
        folded = {key: name for key, name in folded.items() if key[:1] == word[:1] and abs(len(key) - len(word)) < 3}
    near = difflib.get_close_matches(word, itertools.islice(folded, MOST_COMPARED), n=1, cutoff=0.6)
    if near:
        return f' Did you mean "{shorten(folded[near[0]], LONGEST_WORD)}"?'
    listed = ", ".join(shorten(name, LONGEST_WORD) for name in known[:MOST_NAMED])
    more = f" and {len(known) - MOST_NAMED:,} more" if len(known) > MOST_NAMED else ""
    return f" Choose one of: {listed}{more}."


def escape_control_characters(text: str) -> str:
    """The text with control characters as escapes, so that a terminal does not obey them; line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_SHOWN)


def shorten_message(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """A message without the greater part of what it quotes at length, and of what is left beyond `most` characters."""
    if len(text) <= LONGEST_QUOTE:
        return text
    text = text if len(text) <= 50 * limit else f"{text[: 25 * limit]} … {text[-25 * limit :]}"
    text = _QUOTES.sub(lambda found: f"{found[1]}{found[2][:100]}…{found[1]}", text)
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]} … {text[-limit // 3 :]}"


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 text`, `2 texts`, `1,000 entries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def shorten(text: str, limit: int = 200) -> str:
    """A text for a message: on one line, without control characters, cut at `most` characters."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * limit])
    flat = " ".join(plain.split())
    if len(flat) <= limit and len(text) <= 4 * limit:
        return flat
    return f"{flat[:limit]}…"


def bullet_list(names: Iterable[str], limit: int = 12) -> str:
    """Names one a line, the rest counted, so that a message stays readable."""
    every = list(names)
    shown = [f"  {name}" for name in every[:limit]]
    if len(every) > limit:
        shown.append(f"  … and {len(every) - limit} more")
    return "\n".join(shown)
