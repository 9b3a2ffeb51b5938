"""Problems of single texts."""

from __future__ import annotations

import pytest

from regard.data.check.collect import FindingCollector
from regard.data.check.rules.checked_row import checked_row
from regard.data.check.rules.texts import TextRule
from regard.data.records import ClassifyRecord


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
