"""The rules: labels, texts, spans, pairs, duplicates and lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.check.examples import csv_of, good, kinds, rows
from tests.data.helpers import write_file

from regard.data.check.collect import FindingCollector
from regard.data.check.finding import LengthStatistics, TrainingEstimate
from regard.data.check.kinds import KINDS
from regard.data.check.rules.checked_row import checked_row
from regard.data.check.rules.lengths import count_with_tokenizer
from regard.data.check.rules.minhash import BYTES, Sketcher, words_of
from regard.data.check.rules.mojibake import clean, find_mojibake, repair_mojibake
from regard.data.check.rules.reader_errors import add_reader_error
from regard.data.check.rules.scripts import script_of
from regard.data.check.rules.similar_names import edit_distance, similar_names
from regard.data.check.rules.spans import starts_or_ends_inside_word
from regard.data.check.rules.texts import TextRule
from regard.data.check.run import TargetModel, check
from regard.data.readers import read
from regard.data.records import ClassifyRecord
from regard.errors import DataError
from regard.text.learn import train_tokenizer


def test_leaks_and_unknown_labels_between_splits(tmp_path: Path) -> None:
    write_file(tmp_path / "train.csv", rows(30))
    more = [(good(40)[n], "pos") for n in range(33, 38)]
    dev = [
        *more,
        (good()[3], "neg"),
        (good()[4].upper(), "pos"),
        (good(15)[14].replace("asked", "begged"), "pos"),
        ("a barn in Lund", "neutral"),
    ]
    write_file(tmp_path / "valid.csv", csv_of(dev))
    report = check(tmp_path)
    assert [split.name for split in report.splits] == ["train", "valid"]
    results = {finding.kind: finding for finding in report.findings}
    assert (results["leak"].line, results["leak"].severity) == (7, "error")
    assert "line 5 of train.csv (train)" in results["leak"].message
    assert (results["near-leak"].lines, results["near-leak"].count) == ((8, 9), 2)
    assert results["unknown-label"].line == 10
    assert results["unknown-label"].file == str(tmp_path / "valid.csv")
    assert (report.overlaps[0].exact, report.overlaps[0].near, report.overlaps[0].rows) == (1, 2, 9)
    options = check(tmp_path / "train.csv", dev=tmp_path / "valid.csv")
    assert [(one.kind, one.line) for one in options.findings] == [(one.kind, one.line) for one in report.findings]


PLACES = ("Monday", "rainy", "long", "summer")


def test_texts_of_a_template_are_not_near_duplicates(tmp_path: Path) -> None:
    texts = [f"this is the review number {n} of a film that I saw on a {PLACES[n % 4]} evening" for n in range(40)]
    labeled = [(text, "ab"[n % 2]) for n, text in enumerate(texts)]
    write_file(tmp_path / "train.csv", csv_of(labeled[:30]))
    write_file(tmp_path / "valid.csv", csv_of(labeled[30:]))
    assert check(tmp_path).findings == ()


def test_labels_of_two_splits_are_compared(tmp_path: Path) -> None:
    train = write_file(tmp_path / "a.csv", csv_of([(text, "abc"[n % 3]) for n, text in enumerate(good(15))]))
    dev = write_file(tmp_path / "b.csv", csv_of([(text, "abd"[n % 3]) for n, text in enumerate(good(18)[15:])]))
    result = {finding.kind: finding for finding in check(train, dev=dev).findings}
    assert result["unknown-label"].message == 'the label "d" occurs in valid, but not in train'
    assert result["label-not-in-split"].message == 'valid has no row with "c"'


def test_lengths_and_rows_over_the_limit(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", rows(12, ("word " * 300, "pos")))
    corpus = write_file(tmp_path / "corpus.txt", "\n".join(good(30)))
    tokenizer = train_tokenizer([corpus], size=150)
    calls: list[tuple[str, int]] = []

    def forecast(task: str, rows: int, lengths: LengthStatistics, classes: int, split_off: bool) -> TrainingEstimate:
        calls.append((task, rows))
        return TrainingEstimate("tiny", 1000, lengths.total_tokens, 10**6, "this machine", 12.0, 2.0, 5, "much")

    reading = TargetModel(count_with_tokenizer(tokenizer), limit=128, forecast=forecast)
    report = check(path, model=reading)
    assert kinds(report)["too-long"] == 14
    assert report.lengths is not None
    assert report.lengths.max_length > 300
    assert report.lengths.fraction_over_limit == pytest.approx(1 / 13)
    assert sum(report.lengths.counts) == report.lengths.rows == 13
    assert calls == [("classify", 13)]
    assert report.estimate is not None
    assert report.estimate.tokens == report.lengths.total_tokens
    assert check(path).lengths is not None


def test_lengths_of_a_large_file_are_sampled(tmp_path: Path) -> None:
    names = "".join(f"{n} text number {n} of them,{'ab'[n % 2]}\n" for n in range(12_000))
    report = check(write_file(tmp_path / "a.csv", "text,label\n" + names + "30 text number 30 of them,a\n"))
    assert report.rows == 12_001
    assert report.lengths is not None
    assert 5_000 <= report.lengths.rows <= 10_000
    assert kinds(report)["duplicate"] == 12_002


def sketches(texts: list[str]) -> np.ndarray:
    sketcher = Sketcher()
    for text in texts:
        sketcher.add(words_of(text)[0], salt=0)
    return np.frombuffer(sketcher.finish(), np.uint8).reshape(-1, BYTES)


def test_agreement_estimates_the_common_features() -> None:
    words = [f"word{number}" for number in range(400)]
    a, b = sketches([" ".join(words[:300]), " ".join(words[100:])])
    assert abs((a == b).mean() - 0.5) < 0.2


def test_words_and_letters() -> None:
    assert words_of("Good, soup!") == (["good", "soup"], True)
    assert words_of("東京都は日本の首都であり世界最大の都市の一つである")[0][0] == "東"
    assert words_of("a " * 30_000)[1] is False


@pytest.mark.parametrize("text", ["café", "naïve – “quoted”", "€ 5", "привет", "emoji 😀", "¿Qué?", "Åse"])
def test_mojibake_is_repaired_and_correct_text_kept(text: str) -> None:
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
def test_text_that_only_looks_like_mojibake(text: str) -> None:
    assert text == "Ãœ" or find_mojibake(text) is None


@given(st.text())
def test_clean_removes_invisible_characters_only(text: str) -> None:
    once = clean(text)
    assert not set(once) & set("\x00\ufeff\u200b")
    if text.isascii() and text.isprintable():
        assert once == text


def test_kind_does_not_depend_on_the_message(tmp_path: Path) -> None:
    """A column or a text may contain any words of a message."""
    content = '{"text": "a", "the answer is not at": 1}\n{"text": "a", "the answer is not at": "is not JSON"}\n'
    path = write_file(tmp_path / "a.jsonl", content)
    errors: list[DataError] = []
    options = {"columns": {"text": "text", "label": "the answer is not at"}, "labels": "number"}
    assert list(read(path, on_bad=errors.append, **options))  # type: ignore[arg-type]
    assert [error.kind for error in errors] == ["bad-label"]
    assert all(error.kind in KINDS for error in errors)


def test_finding_has_column_expectation_and_fix() -> None:
    collector = FindingCollector()
    error = DataError("is odd", file="a.csv", line=3, column="stars", expected="1 to 5", fix="Correct it.")
    add_reader_error(collector, error, "train")
    (finding,) = collector.findings()
    assert (finding.message, finding.fix) == ("column stars: is odd; expected 1 to 5", "Correct it.")


@pytest.mark.parametrize(
    ("text", "script"),
    [("hello there", "Latin"), ("привет всем", "Cyrillic"), ("日本の首都", "Japanese kana"), ("12 34", None)],
)
def test_script(text: str, script: str | None) -> None:
    assert script_of(text) == script


@pytest.mark.parametrize(
    ("counts", "results"),
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
def test_similar_names(counts: dict[str, int], results: list[tuple[str, str]]) -> None:
    assert [(rare, frequent) for rare, frequent, _ in similar_names(counts)] == results


@given(st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=6))
def test_edit_distance_is_a_metric(one: str, other: str) -> None:
    assert edit_distance(one, other) == edit_distance(other, one)
    assert (edit_distance(one, other) == 0) == (one == other)
    assert edit_distance(one, one + "x") == 1


@pytest.mark.parametrize(
    ("text", "start", "end", "inside"),
    [
        ("Ada Lovelace wrote", 0, 12, False),
        ("Ada Lovelace wrote", 0, 6, True),
        ("Ada Lovelace wrote", 6, 12, True),
        ("in 1843.", 3, 7, False),
        ("東京都は日本", 0, 2, False),  # no spaces between words
    ],
)
def test_boundary_inside_a_word(text: str, start: int, end: int, inside: bool) -> None:
    assert starts_or_ends_inside_word(text, start, end) is inside


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", "empty-text", "the text is empty"),
        (" \n", "empty-text", "the text has only spaces"),
        ("a cafÃ© here", "mojibake", 'the text contains "Ã©", which should be "é"'),
        ("caf\ufffd\ufffd", "replacement-character", "the text has 2 replacement characters (U+FFFD)"),
        ("a\ufeffb", "invisible-character", "character 2 of the text is U+FEFF"),
        ("a\x96b", "control-character", 'character 2 of the text is U+0096 (in Windows-1252: "–")'),
        ("a\u200bb", "invisible-character", "character 2 of the text is U+200B"),
        ("a <br/> b", "markup", 'the text contains "<br/>"'),
    ],
)
def test_problem_and_message(text: str, kind: str, message: str) -> None:
    collector = FindingCollector()
    TextRule(collector).check_row(checked_row(ClassifyRecord(text, "a"), "train"))
    assert [(finding.kind, finding.message) for finding in collector.findings()] == [(kind, message)]


@pytest.mark.parametrize("text", ["plain text", "Ein schöner Tag – “ja”", "привет", "你好", "a < b & c", "----" * 40])
def test_correct_text_has_no_findings(text: str) -> None:
    collector = FindingCollector()
    TextRule(collector).check_row(checked_row(ClassifyRecord(text, "a"), "train"))
    assert collector.findings() == ()
