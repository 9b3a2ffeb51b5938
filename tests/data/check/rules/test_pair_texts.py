"""Pairs: untranslated, of very different length."""

from __future__ import annotations

from tests.data.check.examples import PAIRS

from regard.data.check.collect import FindingCollector
from regard.data.check.row_store import RowStore
from regard.data.check.rules.checked_row import checked_row
from regard.data.check.rules.pair_texts import PairRule
from regard.data.records import Place, Record, TranslateRecord


def kinds_and_lines(records: list[Record]) -> list[tuple[str, int | None]]:
    collector = FindingCollector()
    rows = RowStore()
    rule = PairRule(collector, rows)
    for record in records:
        row = checked_row(record, "train")
        rows.check_row(row)
        rule.check_row(row)
    rule.finish()
    return [(finding.kind, finding.line) for finding in collector.findings()]


def translations(*more: tuple[str, str]) -> list[Record]:
    return [TranslateRecord(a, b, place=Place("a.tsv", line)) for line, (a, b) in enumerate((*PAIRS, *more), 1)]


def test_translations() -> None:
    assert kinds_and_lines(translations()) == []
    assert kinds_and_lines(translations(("not translated at all", "Not translated at all"))) == [("untranslated", 10)]
    assert kinds_and_lines(translations(("Good.", "Bien, " * 20))) == [("length-mismatch", 10)]
