"""The sentences around a sentence in its document, for tasks that use them as context."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from regard.data.records.record import Record
from regard.data.records.tagged import TagRecord

MAX_CONTEXT_WORDS = 256  # on each side of a sentence

Item = TypeVar("Item")


def with_neighbors(records: Iterable[Record]) -> Iterator[Record]:
    """Each record with the texts of its neighbors; `add_neighbors` without rows.

    Example: `model.predict(with_neighbors(TagRecord.from_text(text, document="1") for text in sentences))`.
    """
    return (record for _, record in add_neighbors((None, record) for record in records))


def add_neighbors(rows: Iterable[tuple[Item, Record]]) -> Iterator[tuple[Item, Record]]:
    """Records, each with its row, with the sentences before and after them in the same document.

    Records that follow each other and have the same `document` are sentences of one document. The context is a part of
    the record, so that it does not depend on how records are split, shuffled or divided into batches. At least
    `MAX_CONTEXT_WORDS` words are collected on each side where the document has them, so only a few sentences are in
    memory at once. Records without a document are returned unchanged.
    """
    for document, sentences in groupby(rows, key=lambda pair: getattr(pair[1], "document", None)):
        if document is None:
            yield from sentences
        else:
            yield from _in_document(sentences)


def _in_document(rows: Iterable[tuple[Item, Record]]) -> Iterator[tuple[Item, Record]]:
    left: deque[TagRecord] = deque()
    left_words = 0
    waiting: deque[tuple[Item, TagRecord]] = deque()  # sentences whose right context is not complete
    waiting_words = 0

    def first_in_context() -> tuple[Item, Record]:
        nonlocal left_words, waiting_words
        row, record = waiting.popleft()
        right = tuple(following.text for _, following in waiting)
        surrounded = replace(record, left_context=tuple(one.text for one in left), right_context=right)
        waiting_words -= _words(record)
        left.append(record)
        left_words += _words(record)
        while left_words - _words(left[0]) >= MAX_CONTEXT_WORDS:
            left_words -= _words(left.popleft())
        return row, surrounded

    for row, record in rows:
        assert isinstance(record, TagRecord)
        waiting.append((row, record))
        waiting_words += _words(record)
        while waiting_words - _words(waiting[0][1]) >= MAX_CONTEXT_WORDS:
            yield first_in_context()
    while waiting:
        yield first_in_context()


def _words(record: TagRecord) -> int:
    return max(len(record.spans), 1)


def nearest(texts: Iterable[str], words: int) -> Iterator[str]:
    """The first texts that have this many words together, or all of them."""
    count = 0
    for text in texts:
        if count >= words:
            return
        count += len(text.split())
        yield text
