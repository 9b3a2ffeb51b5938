"""Ordinary files of ordinary programs: other encodings, Excel's CSV and its workbooks."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import pytest
from tests.data.helpers import GERMAN_ROWS, german_table, text_and_label

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.run import check
from regard.data.corpus.token_store import Corpus
from regard.data.readers import read
from regard.errors import DataError, InputError
from regard.text.learn import train_tokenizer
from regard.text.text_files import read_chunks


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_is_read_and_its_encoding_reported(tmp_path: Path, encoding: str, packed: bool) -> None:
    path = tmp_path / ("mails.csv.gz" if packed else "mails.csv")
    content = german_table().encode(encoding)
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.warns(UserWarning, match=r"mails.csv.* is read as .*, because .* --encoding NAME"):
        reader = read(path)
    assert text_and_label(reader) == GERMAN_ROWS
    assert reader.schema.encoding.startswith(encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert text_and_label(list(read(path, encoding=encoding))) == GERMAN_ROWS


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_bytes((german_table() + "one cell\r\n").encode("utf-16"))
    with (
        pytest.warns(UserWarning, match="utf-16-le"),
        pytest.raises(DataError, match=r"mails.csv line 6: the row has 1"),
    ):
        list(read(path))


def test_an_encoding_that_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_text(german_table())
    with pytest.raises(InputError, match='"klingon" is not an encoding'):
        read(path, encoding="klingon")
    with pytest.raises(DataError, match=r"mails.csv line 2: is not ascii"):
        list(read(path, encoding="ascii"))


def test_a_wrong_byte_in_utf8_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_bytes(german_table().encode() + b"caf\xe9 \xe9t\xe9;gut\n")
    with pytest.raises(DataError, match=r"line 6: byte 4 \(0xE9\) is not UTF-8"):
        list(read(path))


def test_check_finds_nothing_wrong_with_an_encoding(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_bytes(german_table().encode("cp1252"))
    with pytest.warns(UserWarning, match="cp1252"):
        result = check(path)
    plain = tmp_path / "plain.csv"
    plain.write_text(german_table(), encoding="utf-8")
    kinds = [finding.kind for finding in result.findings]
    assert kinds == [finding.kind for finding in check(plain).findings]
    assert result.encoding == "cp1252"
    assert result.rows == 4
    with pytest.warns(UserWarning, match="cp1252"):
        write_fixed_copy(path, tmp_path / "fixed.csv")
    assert text_and_label(list(read(tmp_path / "fixed.csv"))) == GERMAN_ROWS
    (tmp_path / "fixed.csv").read_text(encoding="utf-8")


# Text files


def test_text_files_in_other_encodings(tmp_path: Path) -> None:
    text = "Die Küche war größer.\n\nDas Frühstück war für zwölf Gäste.\n\n" * 40
    plain = tmp_path / "plain.txt"
    plain.write_text(text, encoding="utf-8")
    words = train_tokenizer([plain], size=70)
    store = Corpus.build([plain], words, tmp_path / "store")
    for encoding in ("cp1252", "utf-16"):
        path = tmp_path / f"{encoding}.txt"
        path.write_bytes(text.encode(encoding))
        with pytest.warns(UserWarning, match="is read as"):
            assert "".join(read_chunks([path])) == text
        with pytest.warns(UserWarning, match="is read as"):
            assert train_tokenizer([path], size=70).backend.to_str() == words.backend.to_str()
        other = Corpus.build([path], words, tmp_path / f"store-{encoding}", encoding=encoding)
        assert (other.tokens == store.tokens).all()
    with pytest.raises(InputError, match=r"line 1 is not UTF-8|byte 5"):
        "".join(read_chunks([tmp_path / "cp1252.txt"], encoding="utf-8"))


# Workbooks
