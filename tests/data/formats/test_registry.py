"""Formats are tried in order, and the ones added later come first."""

import pytest

from regard.data.formats import registry
from regard.data.formats.format import FileStart, Format, by_suffix
from regard.errors import InputError


@pytest.mark.parametrize(
    ("head", "suffix", "name"),
    [
        (b"text,label\na,b\n", ".csv", "csv"),
        (b'{"text": "a"}\n', ".jsonl", "jsonl"),
        (b"a\tb\n", ".tsv", "tsv"),
        (b"PAR1", "", "parquet"),
        (b"One line.\n\nOther document.\n", ".txt", "text"),
    ],
)
def test_formats_are_detected(head: bytes, suffix: str, name: str) -> None:
    result, reason = registry.detect_format(FileStart(head, suffix))
    assert result.name == name
    assert reason


def test_an_added_format_is_tried_first_and_can_be_removed():
    added = Format("toy", suffixes=(".csv",), sniff=by_suffix(".csv"), rows=lambda *_: iter(()))
    registry.register_format(added)
    try:
        assert next(iter(registry.formats())) == "toy"
        assert registry.detect_format(FileStart(b"", ".csv")) == (added, "the name ends in .csv")
    finally:
        registry.unregister_format("toy")
    with pytest.raises(InputError, match='there is no format "toy"'):
        registry.unregister_format("toy")
    assert {".csv", ".jsonl"} <= set(registry.table_suffixes())
    assert ".txt" in registry.known_suffixes()
    assert "csv" in registry.format_names()
