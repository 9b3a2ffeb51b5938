"""Binary files are refused with advice; text in any script is accepted."""

import pytest

from regard.data.formats.binary_files import check_text
from regard.errors import DataError


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"PK\x03\x04...", r"a\.dat: is a zip archive or a spreadsheet; .*Decompress it"),
        (b"%PDF-1.7", r"is a PDF; .*pdftotext"),
        (bytes(range(32)) * 8, r"is a binary file: 216 of its first 256 bytes are control characters"),
    ],
)
def test_binary_files_are_refused(head: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_text(head, "a.dat")


@pytest.mark.parametrize("head", [b"", b"text,label\n", "größer, может".encode(), "größer".encode()[:4], b"PAR1\0\0\0"])
def test_text_and_parquet_are_accepted(head: bytes) -> None:
    check_text(head, "a.dat")
