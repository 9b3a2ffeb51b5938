"""Reject files that are neither text nor Parquet, with advice for common archives and documents."""

from __future__ import annotations

import codecs

from regard.errors import DataError

PARQUET_MAGIC = b"PAR1"
ARCHIVES = {
    b"PK\x03\x04": (
        "a zip archive or a spreadsheet",
        "Decompress it; name a spreadsheet .xlsx, or save the sheet as CSV.",
    ),
    b"BZh": ("compressed with bzip2", "Decompress it: bunzip2."),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "Decompress it: unzstd."),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "Decompress it: 7z x."),
    b"%PDF": ("a PDF", "Extract its text first: pdftotext."),
    b"SQLite format 3": ("a database", "Export the table as CSV."),
    b"ARROW1": ("an Arrow file", "Save it as Parquet."),
}
CONTROL = bytes({*range(32)} - {9, 10, 12, 13, 27})


def check_text(head: bytes, name: str) -> None:
    """Raise a DataError if the file is neither Parquet nor text."""
    if head.startswith(PARQUET_MAGIC):
        return
    for magic, (kind, fix) in ARCHIVES.items():
        if head.startswith(magic):
            raise DataError(f"is {kind}", file=name, expected="CSV, TSV, JSONL, Parquet or text", fix=fix)
    odd = len(head) - len(head.translate(None, CONTROL))
    if odd > 0.02 * len(head) + 1 and (b"\0" in head or not _utf8(head)):
        message = f"is a binary file: {odd} of its first {len(head)} bytes are control characters"
        fix = "If it is text in another encoding, name that: --encoding NAME (encoding= in Python)."
        raise DataError(message, file=name, expected="CSV, TSV, JSONL, Parquet or text", fix=fix)


def _utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its last character may be cut
    except UnicodeDecodeError:
        return False
    return True
