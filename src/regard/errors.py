"""Errors that a user can fix, and helpers for their messages.

Every message says what was given, what was expected and how to fix it. Public errors:

| error | raised for |
|---|---|
| `RegardError` | base class of all others |
| `InputError` | a value, text or setting that cannot be used |
| `DataError` | a data file, or one row of it, that cannot be used |
| `NotFinite` | NaN or infinity in the output of a network |
| `FolderError` | a model folder that cannot be read, or a path that cannot be written |
| `MissingExtra` | an optional package that is not installed |
| `EngineWarning` | (a warning) a model that runs on another engine than the one that was asked for |
| `SeenRowsWarning` | (a warning) a model is scored on rows that it was trained on |
| `UntrainedWarning` | (a warning) a model with randomly initialized weights |
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable

MAX_COMPARED = 3000  # names that a misspelled name is compared with
MAX_LISTED = 60  # names listed in a message
MAX_NAME_LENGTH = 100  # characters of a name in a message
MAX_MESSAGE_LENGTH = 2000  # characters
MAX_QUOTE_LENGTH = 400  # characters in quotes; longer quotes are shortened, commands and paths are not
_NO_VALUE = object()
_SETTING = re.compile("\x02([^\x02\x03\x1f]*)\x1f([^\x02\x03\x1f]*)\x03")  # Python form, command-line form
_LONG_QUOTE = re.compile(rf"""(["'])((?:(?!\1)[^\n]){{{MAX_QUOTE_LENGTH},}})\1""")
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = {code: f"\\u{code:04x}" for code in _CONTROLS if chr(code) not in "\n\t"}


def setting(name: str, value: object = _NO_VALUE) -> str:
    """A setting inside an error message: `name` or `name=value` in Python, `--name value` on the command line.

    raise InputError(f"{setting('lr')} is {lr}, expected more than 0.")
    raise InputError(f"{setting('epochs', 2)} and {setting('steps', 9)} were both given.")
    """
    flag = f"--{name.replace('_', '-')}"
    if value is _NO_VALUE:
        return f"\x02{name}\x1f{flag}\x03"
    if isinstance(value, float):
        in_python = f"{value:g}"
        on_command_line = in_python
    else:
        in_python = shorten(repr(value), 80)
        on_command_line = shorten(str(value), 80)
    flag_and_value = flag if value is True else f"{flag} {on_command_line}"
    return f"\x02{name}={in_python}\x1f{flag_and_value}\x03"


def call_or_command(call: str, command: str) -> str:
    """Advice inside an error message: a Python call in Python, a command on the command line.

    raise InputError(f"this model has no classes. Use {call_or_command('model.embed(texts)', 'regard embed')}.")
    """
    return f"\x02{call}\x1f{command}\x03"


def _in_python(message: str) -> str:
    """A message whose settings are written as in Python."""
    return _SETTING.sub(r"\1", message)


class RegardError(Exception):
    """Base class of all errors that a user can fix. The command line prints the message and exits with status 1.

    `str(error)` writes settings as in Python (`dev_fraction`), `error.with_flags` as flags (`--dev-fraction`).
    Long messages are shortened and control characters are escaped.

        try:
            regard.train("reviews.csv", out="runs/reviews")
        except regard.RegardError as error:
            print(error)
    """

    def __init__(self, message: object = "", *args: object) -> None:
        self.with_flags = _readable(_SETTING.sub(r"\2", str(message)))
        super().__init__(_readable(_in_python(str(message))), *args)

    def add(self, words: str) -> None:
        """Add a sentence to the message."""
        self.with_flags = f"{self.with_flags} {words}"
        self.args = (f"{self.args[0]} {words}", *self.args[1:])


class InputError(RegardError, ValueError):
    """A value, a text or a setting that cannot be used.

    raise InputError(f"{setting('lr')} is -1, expected more than 0.")
    """


class DataError(RegardError, ValueError):
    """A data file, or one row of it, that cannot be used.

    The message is built from the location, the problem, what was expected and the fix:

        DataError("is not a number", file="a.csv", line=3, column="stars", expected="1 to 5", fix="Correct the row.")
        # a.csv line 3, column stars: is not a number; expected 1 to 5. Correct the row.

    `kind` is the kind of finding that `regard check` reports for a row with this error, see `regard.data.check.kinds`.
    """

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
        kind: str = "bad-row",
    ) -> None:
        self.message = _in_python(message)
        self.kind = kind
        self.file = file
        self.line = line
        self.row = row
        self.column = column
        self.expected = expected
        self.fix = None if fix is None else _in_python(fix)
        numbers = [("line", line), ("row", row), ("column", column)]
        position = ", ".join(f"{name} {number}" for name, number in numbers if number is not None)
        location = " ".join(part for part in (file, position) if part)
        before = f"{location}: " if location else ""
        expectation = "" if expected is None else f"; expected {expected}"
        after = "" if fix is None else f" {fix}"
        super().__init__(f"{before}{message}{expectation}.{after}")


class NotFinite(InputError):
    """A network computed NaN or infinity, so that there is no result.

    raise NotFinite("text 3")
    """

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"the network computed NaN or infinity for {subject}, so there is no result. Its numbers are too large for "
            f"their format (use {setting('dtype', 'fp32')}), or its weights are damaged (use another checkpoint)."
        )


class FolderError(RegardError, OSError):
    """A model folder that cannot be read, or a path that cannot be written.

    raise FolderError("runs/reviews has no config.json. Give the folder of a trained model.")
    """


class MissingExtra(RegardError, ImportError):
    """A feature whose optional packages are not installed.

    raise MissingExtra("the server", "serve")
    # the server needs an optional package. Install it with: pip install "regard[serve]"
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs an optional package. Install it with: pip install "regard[{extra}]"')


class SeenRowsWarning(UserWarning):
    """A model is scored on rows that it was trained on."""


class UntrainedWarning(UserWarning):
    """A model whose weights are randomly initialized is used.

    warnings.filterwarnings("ignore", category=regard.errors.UntrainedWarning)
    """


class EngineWarning(UserWarning):
    """A model runs on another engine than the one that was asked for, such as fp32 in place of int8.

    warnings.filterwarnings("ignore", category=regard.errors.EngineWarning)
    """


def did_you_mean(name: str, choices: Iterable[str], *, key: Callable[[str], str] = str) -> str:
    """` Did you mean "x"?` if a choice is similar to `name`, else a list of the choices (at most MAX_LISTED).

    key: the part of a name that is compared.
    """
    known = sorted(choices)
    word = key(name)[:MAX_NAME_LENGTH].casefold()
    folded = {key(choice).casefold(): choice for choice in known}
    if len(folded) > MAX_COMPARED:  # each comparison takes a tenth of a millisecond
        folded = {
            key: choice for key, choice in folded.items() if key[:1] == word[:1] and abs(len(key) - len(word)) < 3
        }
    matches = difflib.get_close_matches(word, itertools.islice(folded, MAX_COMPARED), n=1, cutoff=0.6)
    if matches:
        return f' Did you mean "{shorten(folded[matches[0]], MAX_NAME_LENGTH)}"?'
    choices_text = ", ".join(shorten(choice, MAX_NAME_LENGTH) for choice in known[:MAX_LISTED])
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return f" Choose one of: {choices_text}{more}."


def suggest(name: str, choices: Iterable[str], limit: int = 3) -> str:
    """` Did you mean "x", "y" or "z"?` for choices that start with `name`, else for the most similar one, if any."""
    known = list(dict.fromkeys(choices))
    word = name[:MAX_NAME_LENGTH].casefold()
    matches = [choice for choice in known if word and choice.casefold().startswith(word)][:limit]
    if not matches:
        matches = difflib.get_close_matches(word, known[:MAX_COMPARED], n=1, cutoff=0.6)
    if not matches:
        return ""
    quoted = [f'"{shorten(match, MAX_NAME_LENGTH)}"' for match in matches]
    *first, last = quoted
    return f" Did you mean {', '.join(first)} or {last}?" if first else f" Did you mean {last}?"


def escape_control_characters(text: str) -> str:
    """The text with control characters as escapes, so that a terminal does not obey them.

    Line ends and tabs are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_ESCAPES)


def shorten_message(text: str, limit: int = MAX_MESSAGE_LENGTH) -> str:
    """A message with long quotes shortened, and cut in the middle if it is still longer than `limit` characters."""
    if len(text) <= MAX_QUOTE_LENGTH:
        return text
    if len(text) > 50 * limit:
        text = f"{text[: 25 * limit]} … {text[-25 * limit :]}"
    text = _LONG_QUOTE.sub(lambda match: f"{match[1]}{match[2][:100]}…{match[1]}", text)
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3]} … {text[-limit // 3 :]}"


def _readable(message: str) -> str:
    return shorten_message(escape_control_characters(message))


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 text`, `2 texts`, `1,000 entries`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {plural or noun + 's'}"


def shorten(text: str, limit: int = 200) -> str:
    """A text for a message: on one line, without control characters, cut at `limit` characters."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * limit])
    one_line = " ".join(printable.split())
    if len(one_line) <= limit and len(text) <= 4 * limit:
        return one_line
    return f"{one_line[:limit]}…"


def bullet_list(names: Iterable[str], limit: int = 12) -> str:
    """Names, one per line; those beyond `limit` are counted."""
    every = list(names)
    lines = [f"  {name}" for name in every[:limit]]
    if len(every) > limit:
        lines.append(f"  … and {len(every) - limit} more")
    return "\n".join(lines)
