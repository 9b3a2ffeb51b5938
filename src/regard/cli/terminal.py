"""Safe output: control characters in texts are shown as escapes, and missing characters or streams are no failure.

Everything that a command prints on stdout passes through `plain_stdout`. On stderr bars draw with control characters of
their own; lines about the work and errors go there through `print_error` and `shared.print_said`.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

from regard.errors import RegardError, escape_control_characters, shorten_message

Parsed = TypeVar("Parsed")
LONG = 500  # characters of an argument that the parser would repeat


class Plain:
    """A stream that writes control characters as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(escape_control_characters(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def plain_stdout() -> Iterator[None]:
    """Write control characters as escapes in everything that is printed."""
    with contextlib.redirect_stdout(cast("TextIO", Plain(sys.stdout))):
        yield


def drawing_stdout() -> TextIO:
    """Stdout for tables that are drawn with control characters: their text must be `plain`."""
    return sys.stdout.stream if isinstance(sys.stdout, Plain) else sys.stdout


def print_error(message: object) -> None:
    """Print an error or a warning on stderr, shortened if it is very long."""
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        print(f"regard: {shorten_message(escape_control_characters(str(message)))}", file=sys.stderr, flush=True)


def prepare_streams() -> None:
    """Make stdout and stderr ready: letters that they cannot hold are escaped, and closed ones lead nowhere.

    Raises RegardError where stdout is closed: an answer would be lost without a word.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # else a file that is opened next would take its place
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open to the end
    if sys.stdout is None:
        raise RegardError("standard output is closed, so nothing can be printed. Redirect it to a file or /dev/null.")
    codecs.register_error("regard", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="regard")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Letters as JSON escapes them, so that JSON stays JSON on a terminal that knows ASCII only."""
    assert isinstance(error, UnicodeEncodeError)
    encoded = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    units = [encoded[index : index + 2].hex() for index in range(0, len(encoded), 2)]
    return "".join(f"\\u{unit}" for unit in units), error.end


def parsed(parse: Callable[[], Parsed], words: list[str]) -> Parsed:
    """What a parser makes of arguments. Its errors repeat them: with long or strange ones they are cut and plain."""
    if all(len(word) <= LONG and escape_control_characters(word) == word for word in words):
        return parse()
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            return parse()
    finally:
        if messages.getvalue():
            print(shorten_message(escape_control_characters(messages.getvalue())), file=sys.stderr, end="")
