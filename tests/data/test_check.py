"""The data doctor finds every planted fault in its line, and nothing in clean data."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import samples
from regard.data.check.finding import CheckReport, LengthStatistics, TrainingEstimate
from regard.data.check.kinds import KINDS
from regard.data.check.rules.languages import language_of, script_of
from regard.data.check.rules.lengths import count_with_tokenizer
from regard.data.check.rules.mojibake import clean, find_mojibake, repair_mojibake
from regard.data.check.rules.similar_names import edit_distance, similar_names
from regard.data.check.run import TargetModel, check
from regard.errors import DataError
from regard.progress import Progress
from regard.text.learn import train_tokenizer

# ruff: noqa: E501 (a fault is easier to read in one line)
GOOD = (
    "The kitchen serves warm bread and leek soup before noon",
    "Our train was late again because of snow on the line",
    "She wrote a long letter about the roses in her garden",
    "Nobody knew why the old door had been painted green",
    "Two students measured the hall with a piece of string",
    "My uncle keeps bees behind the church in summer",
    "Rain fell all night so the match was called off",
    "The baker closed early and went fishing with his son",
    "A small boat waited at the pier until the fog lifted",
    "They sold the piano to pay for a new roof",
    "Every clock in the shop showed a different hour",
    "He forgot his keys but climbed in through the window",
    "The museum lends coats to visitors who come in shorts",
    "Grandfather carved spoons from the branches of a plum tree",
    "We lost the map and asked a shepherd for the way",
    "The choir sang twice as loud when the lights went out",
    "Her first novel sold nine copies and one was returned",
    "Someone left a cello on the last bus to the harbour",
    "The mayor promised to fix the bridge by next spring",
    "Frost killed the tomatoes but spared the cabbages",
    "A stray dog followed the postman through the whole village",
    "The dentist hums old songs while he works",
    "Three ladders were stolen from the site over the weekend",
    "It took us an hour to boil water on that stove",
    "The library is quiet except for the radiator",
    "His brother repairs accordions in a cellar without windows",
    "The cheese had to be carried down the hill by mule",
    "Nobody applauded until the magician found his rabbit",
    "The lift stops between floors when the wind blows from the west",
    "I bought a lamp that smells of oranges",
    "Children built a dam across the brook and flooded the path",
    "The ferry captain knits scarves during the crossing",
    "Our neighbour waters plastic flowers to look busy",
    "An owl nests in the chimney of the town hall",
    "The recipe asks for more patience than butter",
    "Workers found a coin from Rome under the car park",
    "She paints only at dawn and sleeps through lunch",
    "The goats learned how to open the gate last week",
    "A violinist practised scales while the soup burned",
    "They named the street after a horse that won once",
)


def good(count: int = 12) -> list[str]:
    """Plain English texts, no two alike."""
    return list(GOOD[:count])


PLACES = ("Monday", "rainy", "long", "summer")


def csv_of(rows: list[tuple[str, str]], header: str = "text,label") -> str:
    return header + "\n" + "".join(f'"{text}",{label}\n' for text, label in rows)


def rows(count: int = 12, *more: tuple[str, str]) -> str:
    """A clean CSV of two labels; what is added stands in line count + 2 and after."""
    return csv_of([(text, ("pos", "neg")[n % 2]) for n, text in enumerate(good(count))] + list(more))


def jsonl(*objects: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def entities(*spans: tuple[int, int], text: str = "Ada Lovelace met Charles Babbage in London") -> dict[str, Any]:
    return {"text": text, "entities": [{"start": start, "end": end, "label": "PER"} for start, end in spans]}


def question(
    answer: str, start: int | None, ask: str = "Who came?", context: str = "Ada came to Bath by coach."
) -> dict[str, Any]:
    return {
        "id": ask + answer,
        "context": context,
        "question": ask,
        "answers": [{"text": answer, "answer_start": start}],
    }


SPANS = (entities((0, 12), (17, 32)), entities((4, 8), text="Mrs Dale reads"), entities((0, 3), text="Tom Hart sang"))
ASKED = (question("Ada", 0), question("Bath", 12, "Where to?"), question("coach", 20, "How did she come?"))
CONLL = "Ada B-PER\nLovelace I-PER\nsang O\n\nin O\nLondon B-LOC\n\nand O\nBath B-LOC\n\n"
PAIRS = (
    ("The house is old.", "La casa es vieja."),
    ("We ate bread and soup.", "Comimos pan y sopa."),
    ("She plays the piano every single day.", "Ella toca el piano todos los días."),
    ("My brother works in a large bank in the city.", "Mi hermano trabaja en un gran banco de la ciudad."),
    ("He said that she was not at home with the others.", "Dijo que ella no estaba en casa con los demás."),
    ("They have a dog and it is on the sofa all day.", "Tienen un perro y está en el sofá todo el día."),
    ("This is the man who was with her in the garden.", "Este es el hombre que estaba con ella en el jardín."),
    ("I do not know if you will be there for the show.", "No sé si vas a estar allí para el espectáculo."),
    ("It rained the whole week and nobody went out.", "Llovió toda la semana y nadie salió a la calle."),
)


def tsv(*more: tuple[str, str]) -> str:
    return "english\tspanish\n" + "".join(f"{one}\t{two}\n" for one, two in (*PAIRS, *more))


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
    "a label twice in one row": ("a.csv", csv_of([(t, ("a|b", "b", "a")[n % 3]) for n, t in enumerate(good())] + [("a barn", "a|a")]), "repeated-label", 14),
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
    "a BOM before the file": ("a.csv", b"\xef\xbb\xbf" + rows().encode(), "bom", 1),
    "a BOM inside a text": ("a.csv", rows(12, ("\ufeffthe door was shut", "pos")), "bom", 14),
    "a control character": ("a.csv", rows(12, ("the door\x08 was shut", "pos")), "control-character", 14),
    "an invisible character": ("a.csv", rows(12, ("the do\u200bor was shut", "pos")), "invisible-character", 14),
    "HTML": ("a.csv", rows(12, ("the <br/> door was shut", "pos")), "markup", 14),
    "escapes": ("a.csv", rows(12, ("the caf\\u00e9 was shut", "pos")), "unresolved-escape", 14),
    "one letter over and over": ("a.csv", rows(12, ("no" + "o" * 200, "pos")), "repeated-character", 14),
    "the header again": ("a.csv", rows(12, ("text", "label")), "repeated-header", 14),
    "too many columns": ("a.csv", rows() + "a text, and more,pos\n", "wrong-columns", 14),
    "a quote left open": ("a.csv", rows() + '"never closed,pos\n', "unbalanced-quotes", 14),
    "a line that is no JSON": ("a.jsonl", jsonl(*SPANS) + "{oops\n", "not-json", 4),
    "a value that is missing": ("a.jsonl", jsonl({"text": "a b", "label": "x"}, {"text": "c d", "label": "y"}, {"text": None, "label": "x"}), "missing-value", 3),
    "another language": ("a.csv", rows(12, ("das ist nicht der Weg den ich mit dir gehen wollte", "pos")), "other-language", 14),
    "another script": ("a.csv", rows(12, ("сегодня очень хорошая погода", "pos")), "other-script", 14),
    "a word in two scripts": ("a.csv", rows(12, ("pay with pаypаl today", "pos")), "mixed-script", 14),
    "entities that overlap": ("a.jsonl", jsonl(*SPANS, entities((0, 12), (4, 16))), "entity-overlap", 4),
    "an entity outside": ("a.jsonl", jsonl(*SPANS, entities((0, 90))), "entity-outside", 4),
    "an entity with a space": ("a.jsonl", jsonl(*SPANS, entities((0, 13))), "entity-space", 4),
    "an entity inside a word": ("a.jsonl", jsonl(*SPANS, entities((0, 6), text="Ada Lovelace wrote to him")), "entity-inside-word", 4),
    "an entity with a comma": ("a.jsonl", jsonl(*SPANS, entities((0, 4), text="Ada, come here now")), "entity-punctuation", 4),
    "an entity that is elsewhere": ("a.jsonl", jsonl(*SPANS, {"text": "Ada sang", "entities": [{"start": 4, "end": 8, "label": "PER", "text": "Ada"}]}), "entity-mismatch", 4),
    "tags that do not open": ("a.conll", CONLL + "then O\nMary I-PER\nleft O\n\n", "broken-tags", 12),
    "tags of another kind": ("a.conll", CONLL + "Mary B-PER\nHill I-LOC\nleft O\n\n", "broken-tags", 12),
    "a line with a column missing": ("a.conll", CONLL + "Mary B-PER\nHill\nleft O\n\n", "wrong-columns", 12),
    "fewer tags than words": ("a.jsonl", jsonl({"tokens": ["a", "b"], "tags": ["O", "B-X"]}, {"tokens": ["a", "b"], "tags": ["O"]}), "tag-count", 2),
    "an answer that is elsewhere": ("a.jsonl", jsonl(*ASKED, question("Bath", 3, "What?")), "answer-position", 4),
    "an answer that is nowhere": ("a.jsonl", jsonl(*ASKED, question("York", 3, "What?")), "answer-position", 4),
    "an answer inside a word": ("a.jsonl", jsonl(*ASKED, question("coac", 20, "What?")), "answer-inside-word", 4),
    "a question twice": ("a.jsonl", jsonl(*ASKED, {**question("Ada", 0), "id": "other"}), "duplicate", 4),
    "an id twice": ("a.jsonl", jsonl(*ASKED, {**question("Bath", 12, "To what town?"), "id": "Who came?Ada"}), "duplicate-id", 4),
    "an untranslated pair": ("a.tsv", tsv(("We leave tomorrow at noon.", "We leave tomorrow at noon.")), "untranslated", 11),
    "a pair of unequal length": ("a.tsv", tsv(("Good.", "Bien, y además quería contarte todo lo que pasó ayer en la plaza.")), "length-mismatch", 11),
    "a translation left empty": ("a.tsv", tsv(("We leave tomorrow.", "")), "empty-text", 11),
    "a source in the target's language": ("a.tsv", tsv(("Ella no quiere que los niños jueguen en la calle.", "Ella no quiere eso para los niños.")), "other-language", 11),
    "a pair of one text": ("a.csv", "sentence1,sentence2,label\n" + "".join(f"{a},{b},{n % 2}\n" for n, (a, b) in enumerate(zip(good(), good(24)[12:], strict=True))) + "a barn,a barn,1\n", "identical-pair", 14),
}  # fmt: skip


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_in_its_line(tmp_path: Path, name: str) -> None:
    file, content, kind, line = FAULTS[name]
    report = check(put(tmp_path / file, content))
    found = [finding for finding in report.findings if finding.kind == kind]
    assert [finding.line for finding in found] == [line], report.findings
    assert found[0].file == str(tmp_path / file)
    assert found[0].message
    assert found[0].fix
    assert report.complete
    others = {finding.kind for finding in report.findings if finding.severity != "note"} - {kind}
    assert others <= ALLOWED.get(name, set())


# What a fault brings along.
ALLOWED = {
    "labels out of balance": {"rare-label"},
}


def test_there_are_more_than_thirty_faults_of_many_kinds() -> None:
    assert len(FAULTS) >= 55
    assert len({kind for _, _, kind, _ in FAULTS.values()}) >= 40


CLEAN = {
    "a.csv": rows(30),
    "b.jsonl": jsonl(*SPANS),
    "c.jsonl": jsonl(*ASKED),
    "d.conll": CONLL,
    "e.tsv": tsv(),
    "f.txt": "\n\n".join(good()),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_data_gives_nothing(tmp_path: Path, name: str) -> None:
    report = check(put(tmp_path / name, CLEAN[name]))
    assert report.findings == ()
    assert report.rows > 0


@pytest.mark.parametrize("name", ["messages", "places", "questions", "english-spanish", "corpus"])
def test_our_own_samples_are_clean(name: str) -> None:
    assert check(samples.path(name)).findings == ()


def kinds(report: CheckReport) -> dict[str, int | None]:
    return {finding.kind: finding.line for finding in report.findings}


def test_leaks_and_labels_between_splits(tmp_path: Path) -> None:
    put(tmp_path / "train.csv", rows(30))
    more = [(good(40)[n], "pos") for n in range(33, 38)]
    dev = [
        *more,
        (good()[3], "neg"),
        (good()[4].upper(), "pos"),
        (good(15)[14].replace("asked", "begged"), "pos"),
        ("a barn in Lund", "neutral"),
    ]
    put(tmp_path / "valid.csv", csv_of(dev))
    report = check(tmp_path)
    assert [split.name for split in report.splits] == ["train", "valid"]
    found = {finding.kind: finding for finding in report.findings}
    assert (found["leak"].line, found["leak"].severity) == (7, "error")
    assert "line 5 of train.csv (train)" in found["leak"].message
    assert (found["near-leak"].lines, found["near-leak"].count) == ((8, 9), 2)
    assert found["unknown-label"].line == 10
    assert found["unknown-label"].file == str(tmp_path / "valid.csv")
    assert (report.overlaps[0].exact, report.overlaps[0].near, report.overlaps[0].rows) == (1, 2, 9)
    told = check(tmp_path / "train.csv", dev=tmp_path / "valid.csv")
    assert [(one.kind, one.line) for one in told.findings] == [(one.kind, one.line) for one in report.findings]


def test_findings_come_by_severity_with_examples(tmp_path: Path) -> None:
    content = rows(12, (good()[2], "pos"), (good()[3], "neg"), ("", "pos"), ("a &amp; b are far away", "neg"))
    report = check(put(tmp_path / "a.csv", content))
    assert [finding.severity for finding in report.findings] == ["error", "warning", "note"]
    twice = report.findings[1]
    assert (twice.kind, twice.count, twice.lines) == ("duplicate", 2, (14, 15))
    assert [one.text for one in twice.examples] == [good()[2], good()[3]]
    said = report.as_json()
    assert {"rows", "task", "labels", "findings"} <= set(said)
    assert {"kind", "severity", "line", "message", "fix"} <= set(said["findings"][0])
    assert (said["rows"], said["task"], said["labels"]) == (16, "classify", {"pos": 8, "neg": 8})
    json.dumps(said)


def test_rows_of_parquet_are_named_by_number(tmp_path: Path) -> None:
    table = pyarrow.table({"text": [*good(), "the caf\ufffd"], "label": ["a", "b"] * 6 + ["a"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    finding = check(tmp_path / "a.parquet").findings[0]
    assert (finding.kind, finding.line, finding.row) == ("replacement-character", None, 13)


def test_told_columns_and_skipped_rows(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of([(t, str(n % 2)) for n, t in enumerate(good())], "words,mark") + "a,b,c\n")
    report = check(path, columns={"text": "words", "label": "mark"}, skip_bad=tmp_path / "bad.jsonl")
    assert (report.rows, report.bad_rows, kinds(report)) == (12, 1, {"wrong-columns": 14})
    assert json.loads((tmp_path / "bad.jsonl").read_text())["line"] == 14


def test_lengths_in_tokens_and_what_exceeds_the_model(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", rows(12, ("word " * 300, "pos")))
    corpus = put(tmp_path / "corpus.txt", "\n".join(good(30)))
    tokenizer = train_tokenizer([corpus], size=150)
    asked: list[tuple[str, int]] = []

    def forecast(task: str, rows: int, lengths: LengthStatistics) -> TrainingEstimate:
        asked.append((task, rows))
        return TrainingEstimate("tiny", 1000, lengths.total_tokens, 10**6, "this machine", 12.0, 2.0, 5, "much")

    reading = TargetModel(count_with_tokenizer(tokenizer), limit=128, forecast=forecast)
    report = check(path, model=reading)
    assert kinds(report)["too-long"] == 14
    assert report.lengths is not None
    assert report.lengths.max_length > 300
    assert report.lengths.fraction_over_limit == pytest.approx(1 / 13)
    assert sum(report.lengths.counts) == report.lengths.rows == 13
    assert asked == [("classify", 13)]
    assert report.estimate is not None
    assert report.estimate.tokens == report.lengths.total_tokens
    assert check(path).lengths is not None


def test_texts_to_a_pattern_are_not_nearly_the_same(tmp_path: Path) -> None:
    texts = [f"this is the review number {n} of a film that I saw on a {PLACES[n % 4]} evening" for n in range(40)]
    labelled = [(text, "ab"[n % 2]) for n, text in enumerate(texts)]
    put(tmp_path / "train.csv", csv_of(labelled[:30]))
    put(tmp_path / "valid.csv", csv_of(labelled[30:]))
    assert check(tmp_path).findings == ()


def test_a_large_file_is_sampled_for_lengths_alone(tmp_path: Path) -> None:
    names = "".join(f"{n} text number {n} of them,{'ab'[n % 2]}\n" for n in range(30_000))
    report = check(put(tmp_path / "a.csv", "text,label\n" + names + "30 text number 30 of them,a\n"))
    assert report.rows == 30_001
    assert report.lengths is not None
    assert 5_000 <= report.lengths.rows <= 10_000
    assert kinds(report)["duplicate"] == 30_002


# Odd files.


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    for name, content, says in (
        ("empty.csv", b"", "is empty"),
        ("binary.csv", bytes(range(256)) * 50, "is a binary file"),
        ("zip.csv", b"PK\x03\x04abc", "a zip archive"),
        ("all.csv", b"text,label\na\nb\n", "2 bad rows and no other"),
    ):
        report = check(put(tmp_path / name, content))
        assert not report.complete
        found = next(one for one in report.findings if one.kind == "unreadable")
        assert says in found.message
        assert (found.severity, found.file) == ("error", str(tmp_path / name))
        assert report.rows == 0


def test_data_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for where, says in ((tmp_path / "a.csv", "does not exist"), (tmp_path, "holds no file named train")):
        with pytest.raises(DataError, match=says):
            check(where)


def test_ten_megabytes_of_plain_text_in_one_line(tmp_path: Path) -> None:
    report = check(put(tmp_path / "a.txt", "some words here, " * 600_000))
    assert (report.rows, report.task, report.complete) == (1, "text", True)


def test_a_file_that_changes_while_it_is_read_is_a_finding(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", rows(30) + '"more text to read here",pos\n' * 20_000)

    def change(progress: Progress) -> None:
        if progress.done == 500:
            put(path, rows(30))

    report = check(path, progress=change)
    assert not report.complete
    assert "changed while it was read" in next(one.message for one in report.findings if one.kind == "unreadable")


def test_one_character_a_million_times_and_ten_megabytes_in_a_line(tmp_path: Path) -> None:
    began = time.monotonic()
    found = check(put(tmp_path / "a.csv", rows(12, ("x" * 1_000_000, "pos"))))
    assert kinds(found)["repeated-character"] == 14
    tracemalloc.start()
    found = check(put(tmp_path / "b.csv", rows(12, ("many words in one line " * 450_000, "pos"))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.rows == 13
    assert peak < 250e6
    assert time.monotonic() - began < 30


def test_packed_files_and_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(rows(12).encode()))
    put(tmp_path / "b.csv", rows(30).split("\n", 13)[0] + "\n" + csv_of([(good()[2], "pos")]).split("\n", 1)[1])
    report = check([tmp_path / "a.csv.gz", tmp_path / "b.csv"])
    finding = report.findings[0]
    assert (finding.kind, finding.file, finding.line) == ("duplicate", str(tmp_path / "b.csv"), 2)
    assert "line 4 of a.csv.gz" in finding.message


# Parts.


@pytest.mark.parametrize("text", ["café", "naïve – “quoted”", "€ 5", "привет", "emoji 😀", "¿Qué?", "Åse"])
def test_mojibake_is_mended_and_good_text_is_left(text: str) -> None:
    assert find_mojibake(text) is None
    assert clean(text) == text
    for codec in ("latin1", "cp1252"):
        try:
            broken = text.encode().decode(codec)
        except UnicodeDecodeError:
            continue
        if broken != text and find_mojibake(broken) is not None:
            assert repair_mojibake(broken) == text


@pytest.mark.parametrize(
    "text", ["„Spaß“", "DÉJÀ VU…”", "NÃO", "Ãœ", "SÃO PAULO", "à la carte", "Müller & Söhne", "“É…”"]
)
def test_what_only_looks_like_mojibake(text: str) -> None:
    assert text == "Ãœ" or find_mojibake(text) is None


@given(st.text())
def test_cleaning_twice_is_cleaning_once_for_plain_text(text: str) -> None:
    once = clean(text)
    assert not set(once) & set("\x00\ufeff\u200b")
    if text.isascii() and text.isprintable():
        assert once == text


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ({"positive": 9, "postive": 1}, [("postive", "positive")]),
        ({"positive": 9, "negative": 3}, []),
        ({"entailment": 9, "not_entailment": 3}, []),
        ({"Sports": 9, "sports": 9}, [("sports", "Sports")]),
        ({"LOC": 90, "LCO": 1}, [("LCO", "LOC")]),
        ({"class1": 90, "class2": 1}, []),
        ({"c": 9, "c++": 1}, []),
        ({"1": 9, "-1": 1, "10": 1}, []),
        ({"typical": 90, "atypical": 1}, []),
        ({"PER": 90, "ORG": 1, "LOC": 3}, []),
    ],
)
def test_labels_that_look_like_one(counts: dict[str, int], found: list[tuple[str, str]]) -> None:
    assert [(rare, frequent) for rare, frequent, _ in similar_names(counts)] == found


@given(st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=6))
def test_the_distance_of_names_is_one(one: str, other: str) -> None:
    assert edit_distance(one, other) == edit_distance(other, one)
    assert (edit_distance(one, other) == 0) == (one == other)
    assert edit_distance(one, one + "x") == 1


def test_scripts_and_languages() -> None:
    assert script_of("hello there") == "Latin"
    assert script_of("привет всем") == "Cyrillic"
    assert script_of("12 34") is None
    assert language_of("the cat is on the table and it was not there") == "English"
    assert language_of("el perro está en la casa y no quiere salir con los niños") == "Spanish"
    assert language_of("Aspirin Paracetamol Ibuprofen") is None


lists = st.lists(st.tuples(st.text(min_size=1, max_size=30), st.sampled_from("abc")), min_size=2, max_size=8)


@settings(max_examples=40, deadline=None)
@given(lists)
def test_any_text_goes_through(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    report = check(path)
    assert report.rows + report.bad_rows == len(rows) or not report.complete
    assert {finding.kind for finding in report.findings} <= set(KINDS)
