"""Exports of doccano, spaCy, Label Studio and Prodigy are read as spans or classes; none becomes a class name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.data.helpers import fields

from regard.data.check.run import check
from regard.data.readers import read
from regard.data.records import ClassifyRecord, Entity, TagRecord
from regard.errors import DataError

TEXT = "Ada Lund moved to Oslo in May."
ADA, OSLO = Entity(0, 8, "PER"), Entity(18, 22, "LOC")
OTHER = "It rained all day."


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def whole(path: Path, value: Any, indent: int | None = None) -> Path:
    path.write_text(json.dumps(value, indent=indent))
    return path


def found_entities(path: Path, **options: Any) -> list[tuple[str, tuple[Entity, ...]]]:
    reader = read(path, **options)
    assert reader.schema.task == "tag"
    return [(record.text, record.entities) for record in reader if isinstance(record, TagRecord)]


def found_labels(path: Path, **options: Any) -> list[tuple[str, Any]]:
    reader = read(path, **options)
    assert reader.schema.task == "classify"
    return [(record.text, record.label) for record in reader if isinstance(record, ClassifyRecord)]


BOTH = [(TEXT, (ADA, OSLO)), (OTHER, ())]
TRIPLES = [[0, 8, "PER"], [18, 22, "LOC"]]
OFFSETS = [
    {"id": 1, "label": "PER", "start_offset": 0, "end_offset": 8},
    {"id": 2, "label": "LOC", "start_offset": 18, "end_offset": 22},
]
PLAIN = [{"start": 0, "end": 8, "label": "PER"}, {"start": 18, "end": 22, "label": "LOC"}]
STUDIO = [
    {"start": 0, "end": 8, "text": "Ada Lund", "labels": ["PER"]},
    {"start": 18, "end": 22, "text": "Oslo", "labels": ["LOC"]},
]


@pytest.mark.parametrize(
    ("text", "column", "spans"),
    [
        ("text", "label", TRIPLES),
        ("text", "labels", TRIPLES),
        ("text", "entities", TRIPLES),
        ("data", "label", TRIPLES),
        ("text", "entities", OFFSETS),
        ("text", "label", OFFSETS),
        ("text", "marks", PLAIN),
        ("text", "spans", PLAIN),
    ],
)
def test_spans_in_any_column_and_notation_are_entities(tmp_path: Path, text: str, column: str, spans: Any) -> None:
    rows = [{"id": 1, text: TEXT, column: spans, "Comments": []}, {"id": 2, text: OTHER, column: [], "Comments": []}]
    assert found_entities(lines(tmp_path / "a.jsonl", *rows)) == BOTH
    assert found_entities(whole(tmp_path / "a.json", rows, indent=1)) == BOTH
    assert found_entities(tmp_path / "a.jsonl", columns={"label": column, "text": text}) == BOTH
    assert found_entities(tmp_path / "a.jsonl", task="tag") == BOTH
    if column.startswith("label"):
        with pytest.raises(DataError, match=f"column {column}: holds spans, not class names; expected classes"):
            read(tmp_path / "a.jsonl", task="classify")
    else:
        assert found_labels(tmp_path / "a.jsonl", task="classify") == [(TEXT, None), (OTHER, None)]


def test_doccano_classes_are_names(tmp_path: Path) -> None:
    one = lines(tmp_path / "a.jsonl", {"text": "fine", "label": ["pos"]}, {"text": "bad", "label": ["neg"]})
    assert found_labels(one) == [("fine", "pos"), ("bad", "neg")]
    several = lines(tmp_path / "b.jsonl", {"text": "fine", "label": ["pos", "new"]}, {"text": "bad", "label": []})
    assert found_labels(several) == [("fine", ("pos", "new")), ("bad", ())]
    mixed = lines(tmp_path / "c.jsonl", {"text": "fine", "label": ["pos"]}, {"text": "bad", "label": ["neg"]})
    mixed.write_text(mixed.read_text() * 300 + json.dumps({"text": "odd", "label": ["pos", "neg"]}))
    with pytest.raises(DataError, match=r"line 601, column label: is \['pos', 'neg'\] .*--labels multi"):
        found_labels(mixed)
    assert found_labels(mixed, labels="multi")[-1] == ("odd", ("pos", "neg"))


@pytest.mark.parametrize(
    "label", [[["pos"]], [{"name": "pos"}], {"name": "pos"}, [None], [[0, 2, "ORG"], "pos"], {"a": {"b": 1}}]
)
@pytest.mark.parametrize("labels", [None, "single", "class", "multi"])
def test_a_list_or_an_object_is_never_a_class_name(tmp_path: Path, label: Any, labels: str | None) -> None:
    path = lines(tmp_path / "a.jsonl", {"text": "fine", "label": label}, {"text": "bad", "label": label})
    with pytest.raises(DataError, match=r"line 1, column label: is .* A list or an object is not a class name"):
        list(read(path, labels=labels))
    cells = tmp_path / "a.csv"
    quoted = json.dumps(label).replace('"', '""')
    cells.write_text(f'text,label\nfine,"{quoted}"\nbad,"{quoted}"\n')
    if labels in (None, "multi"):
        with pytest.raises(DataError, match=r"line 2, column label: is .* A list or an object is not a class name"):
            list(read(cells, labels=labels))


def test_spacy_training_data(tmp_path: Path) -> None:
    pairs = [[TEXT, {"entities": TRIPLES}], [OTHER, {"entities": []}]]
    for indent in (None, 2):
        assert found_entities(whole(tmp_path / "a.json", pairs, indent)) == BOTH
    assert found_entities(lines(tmp_path / "a.jsonl", *pairs)) == BOTH
    cats = [["fine", {"cats": {"POS": 1.0, "NEG": 0.0}}], ["bad", {"cats": {"POS": 0.0, "NEG": 1.0}, "entities": []}]]
    assert found_labels(whole(tmp_path / "b.json", cats)) == [("fine", "POS"), ("bad", "NEG")]
    several = [["fine", {"cats": {"POS": 1, "NEW": 1}}], ["bad", {"cats": {"POS": 0, "NEW": 0}}]]
    assert found_labels(whole(tmp_path / "c.json", several)) == [("fine", ("POS", "NEW")), ("bad", ())]


def task(number: int, text: str, *results: Any, **more: Any) -> dict[str, Any]:
    annotation = {"id": number, "completed_by": 1, "result": list(results), "was_cancelled": False, **more}
    return {"id": number, "data": {"text": text, "source": "mail"}, "annotations": [annotation], "predictions": []}


def marked(span: Any, control: str = "ner") -> dict[str, Any]:
    return {"id": "x", "from_name": control, "to_name": "text", "type": "labels", "value": span}


def chosen(*names: str, control: str = "mood") -> dict[str, Any]:
    value = {"choices": list(names)}
    return {"id": "y", "from_name": control, "to_name": "text", "type": "choices", "value": value}


def test_label_studio_spans(tmp_path: Path) -> None:
    tasks = [task(1, TEXT, *map(marked, STUDIO)), task(2, OTHER)]
    path = whole(tmp_path / "a.json", tasks, indent=1)
    assert found_entities(path) == BOTH
    assert "Label Studio JSON" in str(read(path).schema)
    extra = {"id": 1, "annotator": 1, "annotation_id": 4, "created_at": "2024", "updated_at": "2024", "lead_time": 2.0}
    small = [{"text": TEXT, "ner": STUDIO, **extra}, {"text": OTHER, **extra}]
    assert found_entities(whole(tmp_path / "min.json", small)) == BOTH
    renamed = [{"mail": TEXT, "ner": STUDIO, **extra}, {"mail": OTHER, **extra}]
    assert found_entities(whole(tmp_path / "renamed.json", renamed)) == BOTH
    cell = json.dumps(STUDIO).replace('"', '""')
    (tmp_path / "a.csv").write_text(f'text,ner\n{TEXT},"{cell}"\n{OTHER},[]\n')
    assert found_entities(tmp_path / "a.csv") == BOTH


def test_label_studio_choices(tmp_path: Path) -> None:
    tasks = [task(1, "fine", chosen("pos")), task(2, "bad", chosen("neg"))]
    assert found_labels(whole(tmp_path / "a.json", tasks)) == [("fine", "pos"), ("bad", "neg")]
    several = [task(1, "fine", chosen("pos", "new")), task(2, "bad", chosen("neg"))]
    expected = [("fine", ("pos", "new")), ("bad", ("neg",))]
    assert found_labels(whole(tmp_path / "b.json", several)) == expected
    extra = {"annotation_id": 4, "lead_time": 2.0}
    small = [{"text": "fine", "mood": {"choices": ["pos", "new"]}, **extra}, {"text": "bad", "mood": "neg", **extra}]
    assert found_labels(whole(tmp_path / "min.json", small)) == expected


def test_label_studio_annotations_that_cannot_be_used(tmp_path: Path) -> None:
    skipped, open_task = task(2, "skipped", chosen("pos"), was_cancelled=True), task(3, "open")
    open_task["annotations"] = []
    path = whole(tmp_path / "a.json", [task(1, "fine", chosen("pos")), skipped, open_task, task(4, "b", chosen("neg"))])
    reader = read(path)
    assert len(list(reader)) == 2
    assert reader.excluded == {"skipped by the annotator": 1, "not annotated": 1}
    assert reader.summary.endswith("excluded rows: 1 skipped by the annotator, 1 not annotated")
    assert fields(read(path, task="text"), "text") == ["fine", "skipped", "open", "b"]
    findings = [finding.message for finding in check(path).findings if finding.kind == "excluded-row"]
    assert findings == ["1 row left out: skipped by the annotator", "1 row left out: not annotated"]
    two = task(1, "fine", chosen("pos"))
    two["annotations"].append(task(9, "", chosen("neg"))["annotations"][0])
    path = whole(tmp_path / "b.json", [two, task(2, "bad", chosen("neg")), task(3, "ill", chosen("neg"))])
    with pytest.raises(
        DataError, match=r"b.json line 1, row 1, column annotations: 2 annotations differ.*ground truth"
    ):
        list(read(path))
    assert len(list(read(path, skip_bad=tmp_path / "bad.jsonl"))) == 2
    two["annotations"][1]["ground_truth"] = True
    assert found_labels(whole(tmp_path / "b.json", [two, task(2, "x", chosen("pos"))]))[0] == ("fine", "neg")


def test_annotations_of_several_kinds_need_a_choice(tmp_path: Path) -> None:
    tasks = [task(1, TEXT, marked(STUDIO[0]), chosen("pos")), task(2, OTHER, chosen("neg"))]
    path = whole(tmp_path / "a.json", tasks)
    message = r"spans \(ner\) and classes \(mood\). Say which to read: --columns entities=ner or --columns label=mood"
    with pytest.raises(DataError, match=message):
        read(path)
    assert found_labels(path, task="classify") == [(TEXT, "pos"), (OTHER, "neg")]
    assert found_labels(path, columns={"label": "mood"}) == [(TEXT, "pos"), (OTHER, "neg")]
    assert found_entities(path, columns={"entities": "ner"}) == [(TEXT, (ADA,)), (OTHER, ())]
    two = [task(1, "fine", chosen("pos"), chosen("new", control="topic")), task(2, "bad", chosen("neg"))]
    with pytest.raises(DataError, match=r"several kinds: classes \(mood, topic\)"):
        read(whole(tmp_path / "b.json", two))


def prodigy(text: str, answer: str = "accept", **more: Any) -> dict[str, Any]:
    return {"text": text, "_input_hash": 1, "_task_hash": 2, "_view_id": "x", "answer": answer, **more}


def test_prodigy_spans_and_answers(tmp_path: Path) -> None:
    tokens = [{"text": "Ada", "start": 0, "end": 3, "id": 0, "ws": True}]
    spans = [{**span, "token_start": 0, "token_end": 1} for span in PLAIN]
    rows = [
        prodigy(TEXT, spans=spans, tokens=tokens),
        prodigy("no", "reject", spans=spans, tokens=tokens),
        prodigy("what?", "ignore", spans=[], tokens=tokens),
        prodigy(OTHER, spans=[], tokens=tokens),
    ]
    reader = read(lines(tmp_path / "a.jsonl", *rows))
    assert [(record.text, record.entities) for record in reader if isinstance(record, TagRecord)] == BOTH
    assert reader.excluded == {"rejected": 1, "ignored": 1}
    assert fields(read(tmp_path / "a.jsonl", task="text"), "text") == [TEXT, "no", "what?", OTHER]
    with pytest.raises(DataError, match="none of the first 2 rows is usable: rejected"):
        read(lines(tmp_path / "b.jsonl", rows[1], rows[1]))


def test_prodigy_classes(tmp_path: Path) -> None:
    options = [{"id": "POS", "text": "positive"}, {"id": "NEG", "text": "negative"}]
    rows = [prodigy("fine", options=options, accept=["POS"]), prodigy("bad", options=options, accept=["NEG"])]
    ignored = prodigy("odd", "ignore", options=options, accept=[])
    assert found_labels(lines(tmp_path / "a.jsonl", *rows, ignored)) == [("fine", "POS"), ("bad", "NEG")]
    both = prodigy("so so", options=options, accept=["POS", "NEG"])
    assert found_labels(lines(tmp_path / "b.jsonl", *rows, both))[2] == ("so so", ("POS", "NEG"))
    binary = [prodigy("a", label="SPAM", spans=[]), prodigy("b", "reject", label="SPAM", spans=[])]
    path = lines(tmp_path / "c.jsonl", *binary, prodigy("c", "ignore", label="SPAM", spans=[]))
    assert found_labels(path) == [("a", "SPAM"), ("b", "not SPAM")]
    other = prodigy("d", label="HAM", spans=[])
    assert found_labels(lines(tmp_path / "d.jsonl", *binary, other)) == [("a", "SPAM"), ("d", "HAM")]


EMOJI = "\U0001f600 Oslo is cold"


def test_offsets_are_code_points_unless_the_text_of_the_span_says_otherwise(tmp_path: Path) -> None:
    rows = [{"text": EMOJI, "label": [[2, 6, "LOC"]]}, {"text": OTHER, "label": []}]
    assert found_entities(lines(tmp_path / "a.jsonl", *rows))[0] == (EMOJI, (Entity(2, 6, "LOC"),))
    browser = {"start": 3, "end": 7, "text": "Oslo", "labels": ["LOC"]}
    path = whole(tmp_path / "b.json", [task(1, EMOJI, marked(browser)), task(2, OTHER)])
    assert found_entities(path)[0] == (EMOJI, (Entity(2, 6, "LOC"),))


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[0, 8, "PER"], [4, 12, "LOC"]], r"the entity 4 to 12 \(LOC\) overlaps the one before, which ends at 8"),
        ([[0, 9, "PER"]], "begins or ends with a space: 'Ada Lund '. Write 0 to 8"),
        ([[0, 99, "PER"]], "is not a part of the text; expected 0 <= start < end <= 30"),
        ([[0, 8, ""]], r'label\[0\].label: is ""; expected a name'),
        ([{"start": 0, "end": 8, "labels": ["PER", "LOC"]}], "has 2 labels: .*; expected one label for each span"),
        ([{"start": 0, "end": 8, "labels": ["PER"], "text": "Oslo"}], 'says "Oslo", but 0 to 8 is "Ada Lund"'),
    ],
)
def test_spans_that_cannot_be_used_are_named_and_skipped(tmp_path: Path, spans: Any, message: str) -> None:
    good = {"text": TEXT, "label": TRIPLES}
    path = lines(tmp_path / "a.jsonl", good, {"text": TEXT, "label": spans}, good)
    with pytest.raises(DataError, match=rf"a.jsonl line 2, column .*{message}"):
        list(read(path))
    reader = read(path, skip_bad=tmp_path / "bad.jsonl")
    assert len(list(reader)) == 2
    assert json.loads((tmp_path / "bad.jsonl").read_text())["line"] == 2
    result = check(path)
    assert (result.task, result.rows, result.bad_rows, result.findings[0].line) == ("tag", 2, 1, 2)
