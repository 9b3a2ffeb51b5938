"""Encodings are recognized by their bytes, and nothing that is UTF-8 is read as anything else."""

from __future__ import annotations

import codecs
import io
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError, InputError
from regard.text.file_encodings import UTF8_GUESS, as_utf8, detect_encoding, parse_encoding, resolve_byte_order

GERMAN = (
    "text;label\nDie Küche war größer, schöner und für zwölf Gäste gedacht;gut\nEin schäbiges Zimmer – 80 €;schlecht\n"
)
FRENCH = "text,label\nL’hôtel était très agréable,positif\nLe petit-déjeuner n'était pas bon à mon goût,négatif\n"
SPANISH = "text,label\n¿Dónde está el baño?,pregunta\n¡Qué rápido llegó!,elogio\n"
RUSSIAN = "text,label\nПривет, как дела у тебя сегодня,да\nЯ не знаю что сказать,нет\n"
POLISH = "text,label\nZażółć gęślą jaźń i źle się czuję,źle\nŁódka płynęła wzdłuż brzegu,dobrze\n"
CHINESE = "text,label\n今天天气很好,正面\n这个房间太小了,负面\n"


@pytest.mark.parametrize("text", [GERMAN, FRENCH, SPANISH])
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_western_text_is_recognized(text: str, encoding: str) -> None:
    result = detect_encoding([text.encode(encoding, "ignore")])
    assert result.name == "cp1252"
    assert "not valid UTF-8" in result.reason


@pytest.mark.parametrize("text", [GERMAN, FRENCH, RUSSIAN, CHINESE])
@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("mark", [True, False])
def test_wide_encodings_are_recognized(text: str, order: str, width: int, mark: bool) -> None:
    name = f"utf-{width}-{order}"
    result = detect_encoding([("\ufeff" * mark + text).encode(name)])
    assert result.name == name
    assert ("byte order mark" in result.reason) == mark


@pytest.mark.parametrize("text", [GERMAN, FRENCH, RUSSIAN, POLISH, CHINESE, "plain ASCII\n", ""])
def test_utf8_stays_utf8(text: str) -> None:
    assert detect_encoding([text.encode()]) == UTF8_GUESS
    assert detect_encoding([text.encode("utf-8-sig")]) == UTF8_GUESS


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 7))
def test_valid_utf8_is_never_anything_else(text: str, size: int) -> None:
    raw = text.encode()
    if "\0" in text or raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return
    assert detect_encoding([raw]) == UTF8_GUESS
    assert detect_encoding([raw[place : place + size] for place in range(0, len(raw), size)]) == UTF8_GUESS


@pytest.mark.parametrize(
    "raw",
    [
        b"text,label\n" + b"all in ASCII,a\n" * 50 + b"one caf\xe9,b\n",  # one byte alone
        FRENCH.encode() * 9 + b"caf\xe9, \xe9t\xe9, for\xeat\n",  # wrong bytes in a file of UTF-8
        RUSSIAN.encode("cp1251"),
        RUSSIAN.encode("koi8-r"),
        POLISH.encode("cp1250"),
        CHINESE.encode("gbk"),
        CHINESE.encode("big5", "ignore"),
        "これはペンです。今日は晴れ。\n".encode("shift_jis") * 3,
        "Größe und Länge, Fuß und Gruß\n".encode("cp437"),
        "Größe und Länge, Fuß und Gruß\n".encode("mac-roman"),
        b"text with \0 a zero byte,label\n",
        b"PAR1\xff\xfe\xff\xfe",
        bytes(range(256)) * 4,
    ],
)
def test_what_is_not_certain_is_not_guessed(raw: bytes) -> None:
    assert detect_encoding([raw]) == UTF8_GUESS


def test_a_first_letter_far_into_the_file_is_seen() -> None:
    blocks = [b"plain words, nothing else\n" * 4000] * 20 + [FRENCH.encode("cp1252")]
    assert detect_encoding(blocks).name == "cp1252"


def test_names() -> None:
    assert parse_encoding("Latin1") == "iso8859-1"
    assert parse_encoding("UTF-8-SIG") == "utf-8"
    assert parse_encoding("windows-1252") == "cp1252"
    with pytest.raises(InputError, match=r'"cp1253x" is not an encoding of text files. Did you mean "cp125'):
        parse_encoding("cp1253x")
    for name in ("base64", "rot13", "idna", "undefined", "unicode_escape", "zip", "", "x" * 500, "a\0b"):
        with pytest.raises(InputError, match="not an encoding of text files"):
            parse_encoding(name)


def test_a_named_encoding_that_the_file_contradicts() -> None:
    assert resolve_byte_order("cp1251", RUSSIAN.encode("cp1251"), "a.csv") == "cp1251"
    assert resolve_byte_order("utf-16", "\ufeffa".encode("utf-16-be"), "a.csv") == "utf-16-be"
    assert resolve_byte_order("utf-16", "abcd\n".encode("utf-16-be"), "a.csv") == "utf-16-be"
    assert resolve_byte_order("utf-16", CHINESE[-9:-1].encode("utf-16-le"), "a.csv") == "utf-16-le"
    with pytest.raises(
        DataError, match=r"a.csv: starts with the byte order mark of utf-32-le, but .* utf-16 was given"
    ):
        resolve_byte_order("utf-16", "\ufeffa".encode("utf-32-le"), "a.csv")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "utf-16-be", "utf-32-le", "shift_jis", "gb18030"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_the_text_is_the_same_in_utf8(encoding: str, size: int) -> None:
    text = "eins,zwei\r\ndrei,vier\n" * 9000
    stream = as_utf8(io.BytesIO(text.encode(encoding)), encoding, "a.csv")  # type: ignore[arg-type]
    assert b"".join(iter(lambda: stream.read(size) if size > 1 else stream.read(4096), b"")) == text.encode()
    again = as_utf8(io.BytesIO(text.encode(encoding)), encoding, "a.csv")  # type: ignore[arg-type]
    again.seek(70_001)
    assert again.read() == text.encode()[70_001:]


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        (b"one\ntwo\nthree \x81\n", "cp1252"),
        ("one\ntwo\nthree".encode("utf-16-be") + b"\xd8\x00\x00a", "utf-16-be"),
        ("one\ntwo\nthree".encode("utf-16-le") + b"a", "utf-16-le"),
        ("one\ntwo\nthree".encode("utf-32-le") + b"\xff\xff\xff\xff", "utf-32-le"),
    ],
)
def test_damage_is_reported_with_its_line(raw: bytes, encoding: str) -> None:
    with pytest.raises(DataError, match=f"a.csv line 3: is not {encoding}: .* --encoding"):
        as_utf8(io.BytesIO(raw), encoding, "a.csv").read()  # type: ignore[arg-type]


def test_no_warning_for_utf8() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert detect_encoding([GERMAN.encode()]) == UTF8_GUESS
