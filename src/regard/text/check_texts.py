"""Checks of texts before they are tokenized, and the errors of tokenizing."""

from __future__ import annotations

from collections.abc import Sequence

from regard.errors import InputError, shorten


def encoding_error(which: str, text: str, error: BaseException) -> InputError:
    """The error for a text that the tokenizer failed on; `which` names the text: "text 3"."""
    start = shorten(text, 40)
    if not isinstance(error, Exception):
        return InputError(
            f'the tokenizer failed at {which} ("{start}"): {shorten(str(error))}. '
            "Its tokenizer.json is damaged: copy it again from the original model."
        )
    return InputError(
        f'{which} ("{start}") has a part that is not in the vocabulary, and the vocabulary has no unknown token: '
        f'{shorten(str(error))}. Set "unk_token" (for Unigram "unk_id") under "model" in tokenizer.json to a token '
        "of the vocabulary, or learn a vocabulary with an unknown token: regard tokenizer FILE --out DIR"
    )


def check_texts(texts: Sequence[str], subject: str) -> None:
    """Raise InputError unless `texts` is a list of valid strings; `subject` names one in the message: "text"."""
    if isinstance(texts, str | bytes):
        raise InputError(f"a list of texts was expected, but one {type(texts).__name__} was given. Put it into a list.")
    for number, text in enumerate(texts):
        if not isinstance(text, str) or not text.isascii():
            check_text(text, f"{subject} {number}")


def check_text(text: object, subject: str) -> None:
    """Raise InputError unless `text` is a string without unpaired surrogates."""
    if not isinstance(text, str):
        raise InputError(f"{subject} is of type {type(text).__name__}, but a string was expected.{_type_fix(text)}")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{subject} has half of a surrogate pair (U+{ord(text[error.start]):04X}) at character {error.start}, "
            "which cannot be encoded. Fix it with: "
            'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
        ) from error


def _type_fix(text: object) -> str:
    if isinstance(text, bytes):
        return ' Decode it first: text.decode("utf-8").'
    if text is None or isinstance(text, float):
        return " Remove empty rows, or replace them with an empty string."
    return ""
