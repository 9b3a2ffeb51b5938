"""The inputs of `Model.predict` as records of a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from regard.data.records import (
    AnswerRecord,
    ClassifyRecord,
    DocumentRecord,
    PairRecord,
    Place,
    Record,
    TagRecord,
    TranslateRecord,
    column_aliases,
)
from regard.data.records.neighbors import with_neighbors
from regard.errors import InputError
from regard.text.encoding import Encoding

RECORDS = (ClassifyRecord, PairRecord, TagRecord, AnswerRecord, TranslateRecord, DocumentRecord)
EXPECTED = {
    ClassifyRecord: "a text",
    DocumentRecord: "a text",
    TagRecord: "a text, or a list of words",
    PairRecord: "two texts, as (first, second)",
    AnswerRecord: "(question, context)",
    TranslateRecord: "a text",
}
ROLES = {PairRecord: ("first", "second"), AnswerRecord: ("question", "context")}


def as_items(data: Any) -> Iterable[Any]:
    """The inputs as an iterable: the rows of a table or of a dict of columns as dicts, others unchanged."""
    from regard.data.sources.memory import is_table, splits_in_memory, table_rows  # imports the readers of all formats

    items: Iterable[Any] = data  # what is not iterable raises an error in the caller
    if isinstance(data, Mapping):
        if splits_in_memory(data):
            names = ", ".join(map(str, data))
            raise InputError(f'a dict of tables was given ({names:.80}). Give one of them, such as data["test"].')
        if not _is_row(data):
            items = table_rows(data)
    elif is_table(data):
        items = table_rows(data)
    elif hasattr(data, "to_pylist"):  # a column of pyarrow
        items = data.to_pylist()
    return items


def _is_row(data: Mapping[str, Any]) -> bool:
    """Whether a dict holds single values, not columns of them."""
    return any(isinstance(value, str | bytes) or not hasattr(value, "__len__") for value in data.values())


def as_list(data: Any) -> list[Any]:
    """The inputs as a list."""
    data = as_items(data)
    if isinstance(data, str | bytes | Mapping):
        raise InputError(f"one {type(data).__name__} was given where a list was expected. Write [it].")
    try:
        return list(data)
    except TypeError as error:
        raise InputError(f"a list was expected, not {data!r:.100}.") from error


def is_pair(item: Any) -> bool:
    """Whether these are two texts that belong together."""
    if isinstance(item, Mapping):
        return all(any(name in item for name in column_aliases()[role]) for role in ("first", "second"))
    return isinstance(item, PairRecord) or (
        isinstance(item, tuple) and len(item) == 2 and all(isinstance(text, str) for text in item)
    )


def as_records(data: Iterable[Any], kind: type[Any]) -> Iterator[Record]:
    """Texts, tuples, dicts or records as records of one kind, one after the other.

    Dicts with a document, one after the other, are sentences with their neighbors as context; records have their own.
    """
    for is_record, items in groupby(enumerate(data), key=lambda numbered: isinstance(numbered[1], kind)):
        records = (as_record(item, kind, number) for number, item in items)
        yield from records if is_record else with_neighbors(records)


def as_record(item: Any, kind: type[Any], number: int) -> Record:
    """One input as a record."""
    if isinstance(item, kind):
        _check(_texts(item), number, item.place)
        return item  # type: ignore[no-any-return]  # `kind` is a kind of record
    place = Place("the input", row=number + 1)
    if isinstance(item, RECORDS):
        place = item.place
        if not isinstance(item, ClassifyRecord | TagRecord | DocumentRecord):
            raise InputError(f"input {number} is a {type(item).__name__}; this model needs {EXPECTED[kind]}.")
        item = item.text
    if kind in ROLES:
        first, second = _two_texts(item, kind, number)
        _check((first, second), number, place)
        if kind is PairRecord:
            return PairRecord(first, second, place=place)
        return AnswerRecord(str(number), second, first, place=place)
    if kind is TagRecord and _is_words(item):
        _check(item, number, place)
        return TagRecord.from_tokens(item, None, place=place)
    text = _one_text(item, kind, number)
    _check((text,), number, place)
    if kind is TagRecord:
        return TagRecord.from_text(text, document=_document(item), place=place)
    if kind is TranslateRecord:
        return TranslateRecord(text, "", place=place)
    return DocumentRecord(text, place=place) if kind is DocumentRecord else ClassifyRecord(text, place=place)


def _document(item: Any) -> str | None:
    """The document of a row, if it has such a column."""
    if not isinstance(item, Mapping):
        return None
    return next((str(item[name]) for name in column_aliases()["document"] if item.get(name) is not None), None)


def _is_words(item: Any) -> bool:
    return isinstance(item, list | tuple) and all(isinstance(word, str) for word in item)


def _one_text(item: Any, kind: type[Any], number: int) -> str:
    if isinstance(item, Mapping):
        item = _column(item, "text", number)
    if not isinstance(item, str):
        raise InputError(f"input {number} is {item!r:.80} ({type(item).__name__}); this model needs {EXPECTED[kind]}.")
    return item


def _two_texts(item: Any, kind: type[Any], number: int) -> tuple[str, str]:
    if isinstance(item, Mapping):
        first, second = (_column(item, role, number) for role in ROLES[kind])
    elif isinstance(item, Sequence) and not isinstance(item, str | bytes) and len(item) == 2:
        first, second = item
    else:
        raise InputError(f"input {number} is {item!r:.80}; this model needs {EXPECTED[kind]}.")
    for text in (first, second):
        if not isinstance(text, str):
            raise InputError(f"input {number} holds {text!r:.80} ({type(text).__name__}); expected texts.")
    return first, second


def _column(item: Mapping[str, Any], role: str, number: int) -> Any:
    name = next((name for name in column_aliases()[role] if name in item), None)
    if name is None:
        raise InputError(
            f'input {number} has {", ".join(map(str, item)):.80}; expected "{column_aliases()[role][0]}" among them.'
        )
    return item[name]


def _texts(record: Any) -> tuple[str, ...]:
    if isinstance(record, PairRecord):
        return record.first, record.second
    if isinstance(record, AnswerRecord):
        return record.question, record.context
    return (record.source,) if isinstance(record, TranslateRecord) else (record.text,)


def _check(texts: Iterable[str], number: int, place: Place) -> None:
    for text in texts:
        if not text.strip():
            if place.line is not None:
                raise place.error("holds an empty text", fix="Remove the line, or give it words.")
            raise InputError(f"input {number} holds an empty text. Leave it out, or give it words.")


def check_encoding(encoding: Encoding, what: str, vocabulary: int) -> None:
    """Raise InputError if a text has no tokens, or tokens outside the network's vocabulary."""
    if all(encoding.special):
        raise InputError(f"{what} has no token this tokenizer can read. Leave it out, or give it words.")
    if max(encoding.ids) >= vocabulary:
        raise InputError(token_error(what, max(encoding.ids), vocabulary))


def token_error(what: str, token: int, vocabulary: int) -> str:
    """The message for a token id outside the network's vocabulary."""
    return (
        f"{what} has the token {token}, but this network has {vocabulary}: the tokenizer in its folder belongs to "
        "another model. Copy the right one there."
    )
