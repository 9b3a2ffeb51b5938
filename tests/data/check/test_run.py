"""Every planted fault is found in its line, and nothing is found in clean data."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.check.examples import (
    CONLL,
    QUESTIONS,
    SPANS,
    csv_of,
    entities,
    good,
    jsonl,
    kinds,
    question,
    rows,
    tsv,
)
from tests.data.helpers import write_file

from regard import samples
from regard.data.check.finding import LengthStatistics
from regard.data.check.kinds import KINDS
from regard.data.check.run import TargetModel, check
from regard.errors import DataError
from regard.progress import Progress

# ruff: noqa: E501 (a fault is easier to read on one line)
# name of the fault: file, content, kind, line
FAULTS: dict[str, tuple[str, str | bytes, str, int]] = {
    "a label with a letter left out": ("a.csv", rows(12, (good(14)[12], "neg"), (good(14)[13], "psitive")).replace("pos\n", "positive\n"), "similar-label", 15),
    "a label in other case": ("a.csv", rows(12, (good(13)[12], "Pos")), "similar-label", 14),
    "a label with a space": ("a.csv", rows(12, (good(13)[12], "pos ")), "similar-label", 14),
    "a placeholder for a label": ("a.csv", rows(12, (good(13)[12], "N/A")), "unusual-label", 14),
    "a word among numbers": ("a.csv", csv_of([(t, str(n % 2)) for n, t in enumerate(good(24))] + [("a barn in Lund", "good")]), "unusual-label", 26),
    "one label only": ("a.csv", csv_of([(text, "pos") for text in good()]), "single-label", 2),
    "a row without a label": ("a.csv", rows(12, (good(13)[12], "")), "missing-label", 14),
    "labels out of balance": ("a.csv", csv_of([(t, "pos") for t in good(39)] + [(good(40)[39], "neg")]), "imbalance", 41),
    "a label of its own for every row": ("a.csv", csv_of([(t, f"n{n}x") for n, t in enumerate(good(30))]), "too-many-labels", 2),
    "a score far away": ("a.csv", csv_of([(t, f"{n / 10}") for n, t in enumerate(good(20))] + [("a barn in Lund", "470.0")], "text,score"), "label-outlier", 22),
    "a rare label": ("a.csv", rows(12, (good(13)[12], "other")), "rare-label", 14),
    "a row twice": ("a.csv", rows(12, (good()[2], "pos")), "duplicate", 14),
    "a row twice but for case and signs": ("a.csv", rows(12, (good()[2].upper() + "!", "pos")), "near-duplicate", 14),
    "a row twice but for a word": ("a.csv", rows(12, (good()[2].replace("long", "short"), "pos")), "near-duplicate", 14),
    "one text with two labels": ("a.csv", rows(12, (good()[2], "neg")), "label-conflict", 14),
    "an empty text": ("a.csv", rows(12, ("", "pos")), "empty-text", 14),
    "a text of spaces": ("a.csv", rows(12, (" \t ", "pos")), "empty-text", 14),
    "mojibake of a letter": ("a.csv", rows(12, ("a cafÃ© by the sea", "pos")), "mojibake", 14),
    "mojibake of a quote": ("a.csv", rows(12, ("it isnâ€™t far from here", "pos")), "mojibake", 14),
    "mojibake with control characters": ("a.csv", rows(12, ("it isnâ\x80\x99t far from here", "pos")), "mojibake", 14),
    "mojibake of Russian": ("a.csv", rows(12, ("привет, как дела".encode().decode("latin1"), "pos")), "mojibake", 14),
    "a replacement character": ("a.csv", rows(12, ("the caf\ufffd was shut", "pos")), "replacement-character", 14),
    "a NUL": ("a.csv", rows(12, ("the door\0 was shut", "pos")), "nul", 14),
    "half a surrogate pair": ("a.jsonl", jsonl({"text": "one text", "label": "a"}, {"text": "other", "label": "b"}) + '{"text": "bad \\ud83d", "label": "a"}\n', "surrogate", 3),
    "bytes in Latin-1": ("a.csv", rows().encode() + b'"the caf\xe9 was shut",pos\n', "not-utf8", 14),
    "a control character": ("a.csv", rows(12, ("the door\x08 was shut", "pos")), "control-character", 14),
    "a BOM inside a text": ("a.csv", rows(12, ("\ufeffthe door was shut", "pos")), "invisible-character", 14),
    "an invisible character": ("a.csv", rows(12, ("the do\u200bor was shut", "pos")), "invisible-character", 14),
    "HTML": ("a.csv", rows(12, ("the <br/> door was shut", "pos")), "markup", 14),
    "too many columns": ("a.csv", rows() + "a text, and more,pos\n", "wrong-columns", 14),
    "a quote left open": ("a.csv", rows() + '"never closed,pos\n', "unbalanced-quotes", 14),
    "a line that is no JSON": ("a.jsonl", jsonl(*SPANS) + "{oops\n", "not-json", 4),
    "a value that is missing": ("a.jsonl", jsonl({"text": "a b", "label": "x"}, {"text": "c d", "label": "y"}, {"text": None, "label": "x"}), "missing-value", 3),
    "another script": ("a.csv", rows(12, ("сегодня очень хорошая погода", "pos")), "other-script", 14),
    "entities that overlap": ("a.jsonl", jsonl(*SPANS, entities((0, 12), (4, 16))), "entity-overlap", 4),
    "an entity outside": ("a.jsonl", jsonl(*SPANS, entities((0, 90))), "entity-outside", 4),
    "an entity with a space": ("a.jsonl", jsonl(*SPANS, entities((0, 13))), "entity-space", 4),
    "an entity inside a word": ("a.jsonl", jsonl(*SPANS, entities((0, 6), text="Ada Lovelace wrote to him")), "entity-inside-word", 4),
    "an entity that is elsewhere": ("a.jsonl", jsonl(*SPANS, {"text": "Ada sang", "entities": [{"start": 4, "end": 8, "label": "PER", "text": "Ada"}]}), "entity-mismatch", 4),
    "tags that do not open": ("a.conll", CONLL + "then O\nMary I-PER\nleft O\n\n", "broken-tags", 12),
    "tags of another kind": ("a.conll", CONLL + "Mary B-PER\nHill I-LOC\nleft O\n\n", "broken-tags", 12),
    "a line with a column missing": ("a.conll", CONLL + "Mary B-PER\nHill\nleft O\n\n", "wrong-columns", 12),
    "fewer tags than words": ("a.jsonl", jsonl({"tokens": ["a", "b"], "tags": ["O", "B-X"]}, {"tokens": ["a", "b"], "tags": ["O"]}), "tag-count", 2),
    "an answer that is elsewhere": ("a.jsonl", jsonl(*QUESTIONS, question("Bath", 3, "What?")), "answer-position", 4),
    "an answer that is nowhere": ("a.jsonl", jsonl(*QUESTIONS, question("York", 3, "What?")), "answer-position", 4),
    "an answer inside a word": ("a.jsonl", jsonl(*QUESTIONS, question("coac", 20, "What?")), "answer-inside-word", 4),
    "a question twice": ("a.jsonl", jsonl(*QUESTIONS, {**question("Ada", 0), "id": "other"}), "duplicate", 4),
    "an id twice": ("a.jsonl", jsonl(*QUESTIONS, {**question("Bath", 12, "To what town?"), "id": "Who came?Ada"}), "duplicate-id", 4),
    "an untranslated pair": ("a.tsv", tsv(("We leave tomorrow at noon.", "We leave tomorrow at noon.")), "untranslated", 11),
    "a pair of unequal length": ("a.tsv", tsv(("Good.", "Bien, y además quería contarte todo lo que pasó ayer en la plaza.")), "length-mismatch", 11),
    "a translation left empty": ("a.tsv", tsv(("We leave tomorrow.", "")), "empty-text", 11),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found_in_its_line(tmp_path: Path, name: str) -> None:
    file, content, kind, line = FAULTS[name]
    report = check(write_file(tmp_path / file, content))
    results = [finding for finding in report.findings if finding.kind == kind]
    assert [finding.line for finding in results] == [line], report.findings
    assert results[0].file == str(tmp_path / file)
    assert results[0].message
    assert results[0].fix
    assert report.complete
    others = {finding.kind for finding in report.findings if finding.severity != "note"} - {kind}
    assert others <= ALLOWED.get(name, set())


# What a fault brings along.
ALLOWED = {
    "labels out of balance": {"rare-label"},
}


CLEAN = {
    "a.csv": rows(30),
    "b.jsonl": jsonl(*SPANS),
    "c.jsonl": jsonl(*QUESTIONS),
    "d.conll": CONLL,
    "e.tsv": tsv(),
    "f.txt": "\n\n".join(good()),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_data_has_no_findings(tmp_path: Path, name: str) -> None:
    report = check(write_file(tmp_path / name, CLEAN[name]))
    assert report.findings == ()
    assert report.rows > 0


@pytest.mark.parametrize("name", ["messages", "places", "questions", "english-spanish", "corpus"])
def test_bundled_samples_have_no_findings(name: str) -> None:
    assert check(samples.path(name)).findings == ()


def test_parquet_findings_have_row_numbers(tmp_path: Path) -> None:
    table = pyarrow.table({"text": [*good(), "the caf\ufffd"], "label": ["a", "b"] * 6 + ["a"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    finding = check(tmp_path / "a.parquet").findings[0]
    assert (finding.kind, finding.line, finding.row) == ("replacement-character", None, 13)


def test_given_columns_and_skipped_rows(tmp_path: Path) -> None:
    path = write_file(
        tmp_path / "a.csv", csv_of([(t, str(n % 2)) for n, t in enumerate(good())], "words,mark") + "a,b,c\n"
    )
    report = check(path, columns={"text": "words", "label": "mark"}, skip_bad=tmp_path / "bad.jsonl")
    assert (report.rows, report.bad_rows, kinds(report)) == (12, 1, {"wrong-columns": 14})
    assert json.loads((tmp_path / "bad.jsonl").read_text())["line"] == 14


def test_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    for name, content, message in (
        ("empty.csv", b"", "is empty"),
        ("binary.csv", bytes(range(256)) * 50, "is a binary file"),
        ("zip.csv", b"PK\x03\x04abc", "a zip archive"),
        ("all.csv", b"text,label\na\nb\n", "2 bad rows and no other"),
    ):
        report = check(write_file(tmp_path / name, content))
        assert not report.complete
        result = next(one for one in report.findings if one.kind == "unreadable")
        assert message in result.message
        assert (result.severity, result.file) == ("error", str(tmp_path / name))
        assert report.rows == 0


def test_missing_data_is_an_error(tmp_path: Path) -> None:
    for where, message in ((tmp_path / "a.csv", "does not exist"), (tmp_path, "holds no file named train")):
        with pytest.raises(DataError, match=message):
            check(where)


def test_long_line_of_plain_text(tmp_path: Path) -> None:
    report = check(write_file(tmp_path / "a.txt", "some words here, " * 600_000))
    assert (report.rows, report.task, report.complete) == (1, "text", True)


def test_file_that_changes_during_reading_is_a_finding(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", rows(30) + '"more text to read here",pos\n' * 20_000)

    def change(progress: Progress) -> None:
        if progress.done == 500:
            write_file(path, rows(30))

    report = check(path, progress=change)
    assert not report.complete
    assert "changed while it was read" in next(one.message for one in report.findings if one.kind == "unreadable")


def test_very_long_texts_take_limited_time_and_memory(tmp_path: Path) -> None:
    result = check(write_file(tmp_path / "a.csv", rows(12, ("x" * 1_000_000, "pos"))))
    assert result.rows == 13
    tracemalloc.start()
    result = check(write_file(tmp_path / "b.csv", rows(12, ("many words in one line " * 450_000, "pos"))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.rows == 13
    assert peak < 250e6


def test_compressed_files_and_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(rows(12).encode()))
    write_file(tmp_path / "b.csv", rows(30).split("\n", 13)[0] + "\n" + csv_of([(good()[2], "pos")]).split("\n", 1)[1])
    report = check([tmp_path / "a.csv.gz", tmp_path / "b.csv"])
    finding = report.findings[0]
    assert (finding.kind, finding.file, finding.line) == ("duplicate", str(tmp_path / "b.csv"), 2)
    assert "line 4 of a.csv.gz" in finding.message


ROW_LISTS = st.lists(st.tuples(st.text(min_size=1, max_size=30), st.sampled_from("abc")), min_size=2, max_size=8)


@settings(max_examples=40, deadline=None)
@given(ROW_LISTS)
def test_any_text_can_be_checked(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    report = check(path)
    assert report.rows + report.bad_rows == len(rows) or not report.complete
    assert {finding.kind for finding in report.findings} <= set(KINDS)


def test_training_is_estimated_for_the_given_task(tmp_path: Path) -> None:
    tasks: list[tuple[str, bool]] = []

    def forecast(task: str, rows: int, lengths: LengthStatistics, classes: int, split_off: bool) -> None:
        tasks.append((task, split_off))

    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2,score\na dog runs,a dog is running,4.8\nit rains,he sold his car,0.1\n")
    check(path, model=TargetModel(forecast=forecast))
    check(path, task="embed", model=TargetModel(forecast=forecast))
    check(path, dev=path, model=TargetModel(forecast=forecast))
    assert tasks == [("pair", True), ("embed", True), ("pair", False)]
