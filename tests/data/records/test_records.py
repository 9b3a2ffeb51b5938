"""Records of every type: read back from every format, with what they share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.data.helpers import LINE, TEXT, fields, same_folder, table, write_file

from regard.data.readers import read
from regard.data.records import (
    AnswerSpan,
    ClassifyRecord,
    Entity,
    MinimalRecord,
    PairRecord,
    Place,
    TagRecord,
    record_type_names,
)
from regard.data.records.labeled import label_stratum
from regard.data.records.neighbors import MAX_CONTEXT_WORDS, nearest, with_neighbors
from regard.data.records.record import ColumnMap, all_roles, column_aliases, record_types, unregister_record
from regard.data.rows import Row
from regard.errors import DataError, InputError


def test_the_registry():
    names = record_type_names()
    assert (names["classify"], names["embed"], names["masked"]) == ("classify", "pair", "text")
    assert {"text", "label", "group"} <= set(all_roles())
    assert "review" in column_aliases()["text"]
    assert record_types()["pair"] is PairRecord
    with pytest.raises(InputError, match='there is no record type "nothing"'):
        unregister_record("nothing")


@pytest.mark.parametrize(("label", "stratum"), [("a", "'a'"), (("b", "a"), "['a', 'b']"), (0.5, 0.5), (None, "None")])
def test_stratum(label, stratum):
    assert label_stratum(label) == stratum
    assert ClassifyRecord("text", label).stratum == PairRecord("one", "two", label).stratum == stratum


def test_a_question_and_a_sentence_are_a_pair(tmp_path):
    (tmp_path / "qnli.tsv").write_text("question\tsentence\tlabel\nWho came?\tAda came.\tentailment\n")
    (record,) = read(tmp_path / "qnli.tsv")
    assert isinstance(record, PairRecord)
    assert (record.first, record.second, record.label) == ("Who came?", "Ada came.", "entailment")


COLUMNS = ColumnMap({"good": "sentence_good", "bad": "sentence_bad", "kind": "uid"})


def row(good: str, bad: str) -> Row:
    return Row(Place("a.jsonl", 2), {"sentence_good": good, "sentence_bad": bad, "uid": "agreement"}, "")


def test_minimal_pairs():
    record = MinimalRecord.from_row(row("cats sleep", "cats sleeps"), COLUMNS)
    assert (record.good, record.bad, record.kind) == ("cats sleep", "cats sleeps", "agreement")
    with pytest.raises(DataError, match="the two sentences are the same"):
        MinimalRecord.from_row(row("a", "a"), COLUMNS)
    with pytest.raises(DataError, match="column sentence_bad: there is no sentence here"):
        MinimalRecord.from_row(row("a", " "), COLUMNS)


@same_folder
@given(st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT), min_size=1, max_size=4))
def test_questions_come_back(tmp_path: Path, parts: list[tuple[str, str, str, str]]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": str(number),
            "context": before + answer + after,
            "question": question,
            "answers": [{"text": answer, "answer_start": len(before)}] if answer else [],
        }
        for number, (before, answer, after, question) in enumerate(parts)
    ]
    expected = [
        (
            row["id"],
            row["context"],
            row["question"],
            tuple(AnswerSpan(a["text"], a["answer_start"]) for a in row["answers"]),
        )
        for row in rows
    ]
    article = {"title": "t", "paragraphs": [{"context": r["context"], "qas": [r]} for r in rows]}
    write_file(tmp_path / "squad.json", json.dumps({"version": "1", "data": [article]}))
    write_file(tmp_path / "flat.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    cells = [(r["id"], r["context"], r["question"], json.dumps(r["answers"])) for r in rows]
    write_file(tmp_path / "flat.csv", table(cells, ("id", "context", "question", "answers")))
    for name in ("squad.json", "flat.jsonl", "flat.csv"):
        result = read(tmp_path / name)
        assert result.schema.task == "answer"
        assert fields(result, "id", "context", "question", "answers") == expected


def test_squad_two_and_groups(tmp_path: Path) -> None:
    questions = [
        {"id": "1", "question": "q", "answers": [{"text": "b", "answer_start": 2}], "is_impossible": False},
        {"id": "2", "question": "r", "answers": [], "is_impossible": True, "plausible_answers": [{"text": "x"}]},
    ]
    content = {"data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": questions}]}]}
    results = list(read(write_file(tmp_path / "dev-v2.0.json", json.dumps(content))))
    assert fields(results, "id", "answerable", "group") == [("1", True, "T"), ("2", False, "T")]
    path = write_file(tmp_path / "a.csv", "text,label,user\nx,a,u1\n")
    assert [record.group for record in read(path, columns={"group": "user"})] == ["u1"]


LABELS = st.sampled_from(["PER", "LOC", "a-b"])


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, list[Entity]]:
    """A text and stretches of it that do not overlap and have no space at their edges."""
    text = draw(st.text(max_size=60))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [
        Entity(start, end, draw(LABELS)) for start, end in pairs if text[start:end] == text[start:end].strip() != ""
    ]


@given(marked())
def test_character_spans_come_back_as_they_were(options: tuple[str, list[Entity]]) -> None:
    text, spans = options
    record = TagRecord.from_entities(text, spans)
    assert record.entities == tuple(spans)
    assert record.text == text
    assert "".join("".join(record.tokens).split()) == "".join(text.split())
    again = TagRecord.from_tokens(record.tokens, record.tags)
    assert [entity.label for entity in again.entities] == [entity.label for entity in spans]


@given(st.lists(st.text(min_size=1, max_size=8), max_size=10))
def test_tokens_slice_back_from_the_text(tokens: list[str]) -> None:
    record = TagRecord.from_tokens(tokens, None)
    assert record.tokens == tuple(tokens)
    assert (record.tags, record.entities) == (None, ())


def test_an_empty_token_is_reported() -> None:
    with pytest.raises(DataError, match="column tokens: token 1 is empty"):
        TagRecord.from_tokens(["a", ""], ["O", "O"])


def test_a_text_without_tags_is_cut_into_words_and_signs() -> None:
    record = TagRecord.from_text("Zoë's trip (May).")
    assert record.tokens == ("Zoë", "'", "s", "trip", "(", "May", ")", ".")
    assert record.tags is None
    assert record.entities == ()


@same_folder
@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=6))
def test_translations_come_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    assume(not rows[0][0].startswith("\ufeff") and not rows[0][1].startswith("\ufeff"))
    first = write_file(tmp_path / "a.en", "".join(f"{source}\n" for source, _ in rows))
    second = write_file(tmp_path / "a.de", "".join(f"{target}\n" for _, target in rows))
    objects = [{"translation": {"en": source, "de": target}} for source, target in rows]
    lines = write_file(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in objects))
    tabs = write_file(tmp_path / "a.tsv", "".join(f"{source}\t{target}\n" for source, target in [("en", "de"), *rows]))
    sources: list[tuple[Any, dict[str, Any]]] = [((first, second), {}), (f"{first},{second}", {}), (lines, {})]
    for where, options in (*sources, (tabs, {"quoting": False})):
        result = read(where, **options)
        assert dict(result.schema.columns, translation="") == {"source": "en", "target": "de", "translation": ""}
        assert fields(result, "source", "target") == rows
    swapped = read((first, second), columns={"source": "de"})
    assert fields(swapped, "target", "source") == rows
    assert fields(read(lines, columns={"source": "de", "target": "en"}), "target", "source") == rows


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
