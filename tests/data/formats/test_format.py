"""The beginning of a file, and how a format is recognized by its name."""

from regard.data.formats.format import FIRST_READ, FileStart, by_suffix, never


def test_an_incomplete_last_line_is_left_out():
    head = b"one\n\ntwo\n"
    assert FileStart(head, ".txt").lines == ["one", "two"]
    long = FileStart(head + b"x" * FIRST_READ, ".txt")
    assert long.text == "one\n\ntwo\n"
    assert FileStart(b"\xef\xbb\xbfa", "").text == "a"


def test_recognized_by_name_or_never():
    sniff = by_suffix(".kv", ".pairs")
    assert sniff(FileStart(b"", ".pairs")) == "the name ends in .pairs"
    assert sniff(FileStart(b"", ".csv")) is None
    assert never(FileStart(b"", ".kv")) is None
