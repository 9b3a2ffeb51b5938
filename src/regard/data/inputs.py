"""Checks of texts and ids that are passed to the Python API."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from regard.data.records import column_aliases
from regard.errors import InputError, pluralize


def check_ids(ids: Any, what: str, *, vocabulary: int, max_tokens: int | None) -> list[list[int]]:
    """Sequences of ids as lists. Raises InputError for the first sequence that cannot be used."""
    rows = _rows(ids, what)
    if not rows:
        raise InputError(f"{what} is an empty list; give at least one sequence.")
    for number, row in enumerate(rows):
        if not row:
            raise InputError(f"{what}: sequence {number} is empty; give it at least one id.")
        if min(row) < 0 or max(row) >= vocabulary:
            position = next(i for i, token in enumerate(row) if not 0 <= token < vocabulary)
            raise InputError(
                f"{what}: sequence {number}, position {position}: id {row[position]} is outside the vocabulary, "
                f"whose ids are 0 to {vocabulary - 1}. Was it made by another tokenizer?"
            )
        if max_tokens is not None and len(row) > max_tokens:
            raise InputError(
                f"{what}: sequence {number} has {pluralize(len(row), 'token')}; the limit of this network is "
                f"{max_tokens}. Split it into windows of at most {max_tokens} tokens."
            )
    return rows


def check_segments(segments: Any, ids: list[list[int]], *, kinds: int) -> list[list[int]]:
    """Segment ids as lists, one per token of each sequence. Raises InputError if they do not match the ids."""
    if kinds == 0:
        raise InputError("segments were given, but this network has none; leave them out.")
    rows = _rows(segments, "segments")
    if len(rows) != len(ids):
        raise InputError(f"{pluralize(len(ids), 'sequence')} of ids but {len(rows)} of segments; give one for each.")
    for number, (tokens, row) in enumerate(zip(ids, rows, strict=True)):
        if len(tokens) != len(row):
            raise InputError(f"sequence {number} has {len(tokens)} ids but {len(row)} segments; give one per token.")
        if min(row) < 0 or max(row) >= kinds:
            raise InputError(f"segments: sequence {number} holds a number outside 0 to {kinds - 1}.")
    return rows


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list, none of them empty; from a table, its text column. The tokenizer checks their types."""
    from regard.data.sources.memory import is_table  # which imports the readers of all formats

    if isinstance(texts, Mapping) or is_table(texts):
        texts = _text_column(texts)
    if isinstance(texts, str):
        raise InputError("one string was given where a list of texts was expected. Write [text].")
    try:
        texts = list(texts)
    except TypeError as error:
        raise InputError(f"a list of texts was expected, not {texts!r}.") from error
    if not texts:
        raise InputError("the list of texts is empty; give at least one text.")
    for number, text in enumerate(texts):
        if isinstance(text, str) and not text.strip():
            raise InputError(f"text {number} is empty, so there is nothing to read. Leave it out, or give it words.")
    return texts


def _text_column(data: Any) -> list[str]:
    """The texts of a table or of a dict of columns."""
    from regard.data.sources.memory import table_rows

    rows = list(table_rows(data))
    names = list(rows[0]) if rows else []
    column = next((name for name in names if name.strip().lower() in column_aliases()["text"]), None)
    if rows and column is None:
        raise InputError(f'a table with {", ".join(names):.80} was given; give the texts alone, such as data["text"].')
    return [row[column] for row in rows] if column is not None else []


def _rows(data: Any, what: str) -> list[list[int]]:
    """Lists, tuples, arrays or tensors of whole numbers as lists."""
    try:
        rows = [list(row.tolist() if hasattr(row, "tolist") else row) for row in data]
    except TypeError as error:
        raise InputError(f"{what} must be a list of sequences, such as [[5, 6], [7]], not {data!r:.100}.") from error
    for number, row in enumerate(rows):
        try:
            rows[number] = [operator.index(token) for token in row]
        except TypeError as error:
            raise InputError(f"{what}: sequence {number} holds something else than whole numbers: {error}.") from error
    return rows
