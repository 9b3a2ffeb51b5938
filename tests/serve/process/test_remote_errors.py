from __future__ import annotations

import json

import pytest

from regard.errors import FolderError, InputError, NotFinite, RegardError, setting
from regard.serve.process.remote_errors import WorkerFailed, error_from, error_json
from regard.serve.settings import QueueFull, TooLarge


@pytest.mark.parametrize(
    "error",
    [
        InputError(f"{setting('lr')} is 1."),
        NotFinite("text 3"),
        TooLarge("too large"),
        FolderError("no folder"),
        QueueFull("full", retry_after=2.5),
    ],
)
def test_an_error_keeps_its_class_and_message(error: RegardError) -> None:
    copy = error_from(json.loads(json.dumps(error_json(error))))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert isinstance(copy, RegardError)
    assert copy.with_flags == error.with_flags
    assert getattr(copy, "retry_after", None) == getattr(error, "retry_after", None)


def test_other_errors_come_with_their_traceback() -> None:
    copy = error_from(error_json(ZeroDivisionError("no")))
    assert isinstance(copy, WorkerFailed)
    assert "ZeroDivisionError: no" in str(copy)


def test_a_class_that_is_not_known_here() -> None:
    copy = error_from({"type": "OtherError", "message": "words", "with_flags": "words"})
    assert type(copy).__name__ == "OtherError"
    assert isinstance(copy, RegardError)
