"""The sentences around a sentence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regard.data.records import ClassifyRecord, TagRecord
from regard.data.records.neighbors import MAX_CONTEXT_WORDS, nearest, with_neighbors


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(1, 200)), max_size=30))
def test_neighbors_are_those_of_the_document(rows: list[tuple[str | None, int]]) -> None:
    records = [
        TagRecord.from_tokens([f"w{row}"] * words, None, document=document)
        for row, (document, words) in enumerate(rows)
    ]
    results = list(with_neighbors(records))
    assert results == records  # context is not compared
    for row, result in enumerate(results):
        assert isinstance(result, TagRecord)
        left = right = row
        while left > 0 and result.document is not None and records[left - 1].document == result.document:
            left -= 1
        while right < len(rows) - 1 and result.document is not None and records[right + 1].document == result.document:
            right += 1
        before = [records[place].text for place in range(row - 1, left - 1, -1)]
        after = [records[place].text for place in range(row + 1, right + 1)]
        assert result.left_context == tuple(reversed(list(nearest(before, MAX_CONTEXT_WORDS))))
        assert result.right_context == tuple(nearest(after, MAX_CONTEXT_WORDS))


def test_few_sentences_are_in_memory() -> None:
    read = 0

    def sentences():
        nonlocal read
        for _ in range(10_000):
            read += 1
            yield TagRecord.from_text("one two three four", document="1")

    for number, _ in enumerate(with_neighbors(sentences()), 1):
        assert read <= number + MAX_CONTEXT_WORDS // 4


def test_other_records_are_returned_unchanged() -> None:
    records = [ClassifyRecord("a"), TagRecord.from_text("b", document="1"), ClassifyRecord("c")]
    assert list(with_neighbors(records)) == records


def test_nearest_texts_have_enough_words() -> None:
    assert list(nearest(["a b", "c", "d e"], 3)) == ["a b", "c"]
    assert list(nearest(["a b", "c"], 10)) == ["a b", "c"]
    assert list(nearest(["a b"], 0)) == []
