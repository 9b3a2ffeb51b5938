"""Encodings of text files: which one a file has, and its bytes as UTF-8.

Everything behind this module reads UTF-8. A file in UTF-16, UTF-32 or cp1252 is recognized by its bytes, or read in
the encoding that the user names, and converted while it is read.
"""

from __future__ import annotations

import codecs
import io
import re
import warnings
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple, cast

from regard.errors import DataError, InputError, did_you_mean

UTF8 = "utf-8"
BLOCK = 1 << 16  # bytes decoded at once
SCANNED = 1 << 26  # bytes looked through for the first character that is not ASCII
SIGNATURES = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
BINARY = (b"PAR1", b"PK\x03\x04", b"BZh", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"%PDF", b"SQLite format 3", b"ARROW1")
COMMON = (
    *("utf-8", "utf-16", "utf-32", "cp1252", "latin-1", "cp1250", "cp1251", "cp1253", "cp1254", "iso8859-15"),
    *("mac-roman", "cp437", "cp850", "koi8-r", "gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"),
)
NOT_FOR_FILES = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "charmap", "utf-7")
CHANGE = "Use --encoding NAME to read it in another encoding (encoding= in Python)."

# What text in a western language has beside ASCII: punctuation, and letters that stand next to ASCII letters.
PUNCTUATION = set("€‚„…†‘’“”•–—™¡¢£¥§©ª«®°±²³·º»¼½¾¿\xa0\xad")
OUTSIDE_WORDS = set("‚„“”•«»¡¿…†©®°")
RARE = set("ÐÞÝðþýƒŠŽŸ")  # in other encodings these places are letters of other languages
EVIDENCE = 20_000  # characters that are judged
BAD = re.compile("[\udc80-\udcff]+")
GOOD = re.compile("[^\x00-\x7f\udc80-\udcff]")


class EncodingGuess(NamedTuple):
    """An encoding and the reason for it."""

    name: str
    reason: str


PLAIN = EncodingGuess(UTF8, "")


def parse_encoding(name: str) -> str:
    """The usual name of an encoding that a user names; an InputError for any other word."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError, TypeError):
        found = None
    if found is None or found.name in NOT_FOR_FILES or found.incrementaldecoder is None or not _for_text(found):
        raise InputError(f'"{name:.40}" is not an encoding of text files.{did_you_mean(name[:40], COMMON)}')
    return UTF8 if found.name == "utf-8-sig" else found.name


def _for_text(found: codecs.CodecInfo) -> bool:
    return bool(getattr(found, "_is_text_encoding", True))


def detect_encoding(blocks: Iterable[bytes]) -> EncodingGuess:
    """The encoding of a file from its first blocks: UTF-8 unless its bytes show another one.

    What is valid UTF-8 is always UTF-8. A file is taken for cp1252 if bytes in at least two places are not UTF-8,
    hardly any character outside of ASCII is, and if those bytes make sense in cp1252. Anything else stays UTF-8, so
    that reading it fails at the first wrong byte.
    """
    sample, scanned = b"", 0
    decoder = codecs.getincrementaldecoder(UTF8)("surrogateescape")
    bad = good = 0
    for number, block in enumerate(blocks):
        if number == 0:
            found = _by_signature(block) or _by_zeros(block)
            if found is not None:
                return found
        scanned += len(block)
        text = "" if block.isascii() and not decoder.getstate()[0] else decoder.decode(block)
        if text and not text.isascii():
            bad += len(BAD.findall(text))
            good += len(GOOD.findall(text))
            sample += block[: 4 * EVIDENCE]
            if good > 0.05 * bad:
                return PLAIN
            if bad > 100:
                break
        if scanned > SCANNED:
            break
    if bad >= 2 and good <= 0.05 * bad and _makes_sense(sample):
        return EncodingGuess("cp1252", "it is not valid UTF-8")
    return PLAIN


def _by_signature(start: bytes) -> EncodingGuess | None:
    if start.startswith(BINARY):
        return PLAIN
    for mark, name in SIGNATURES:
        if start.startswith(mark):
            return EncodingGuess(name, "it begins with the byte order mark of that") if name != UTF8 else PLAIN
    return None


def _by_zeros(start: bytes) -> EncodingGuess | None:
    """UTF-16 and UTF-32 without a byte order mark: their zero bytes stand in certain places."""
    if b"\0" not in start:
        return None
    quarter, half = len(start) // 4, len(start) // 2
    zeros = [start[place : 4 * quarter : 4].count(0) for place in range(4)]
    even, odd = start[: 2 * half : 2].count(0), start[1 : 2 * half : 2].count(0)
    found = None
    if quarter > 1 and zeros[3] == quarter and zeros[2] > 0.9 * quarter and zeros[0] < 0.1 * quarter:
        found = "utf-32-le"
    elif quarter > 1 and zeros[0] == quarter and zeros[1] > 0.9 * quarter and zeros[3] < 0.1 * quarter:
        found = "utf-32-be"
    elif half > 1 and min(even, odd) <= 0.02 * half:
        name = "utf-16-le" if odd > even else "utf-16-be"
        latin = max(even, odd) > 0.4 * half
        other = min(even, odd) == 0 and max(even, odd) > 1 and not _readable(start.replace(b"\0", b""), UTF8)
        found = name if latin or other else None
    if found is None or not _readable(start, found):
        return None
    return EncodingGuess(found, "of its zero bytes")


def _readable(start: bytes, name: str) -> bool:
    """Whether the bytes are text in that encoding; the last character may be cut."""
    try:
        text = codecs.getincrementaldecoder(name)().decode(start)
    except UnicodeDecodeError:
        return False
    odd = sum(not letter.isprintable() and not letter.isspace() for letter in text[:EVIDENCE])
    return "\0" not in text and odd <= 0.02 * len(text[:EVIDENCE])


def _makes_sense(sample: bytes) -> bool:
    """Whether nearly all bytes above 127 are letters inside western words, or usual punctuation, in cp1252."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    places = [found.start() for found in re.finditer(r"[^\x00-\x7f]", text)][:EVIDENCE]
    usual = sum(_usual(text[max(place - 1, 0) : place], text[place], text[place + 1 : place + 2]) for place in places)
    return usual >= 0.9 * len(places)


def _usual(before: str, letter: str, after: str) -> bool:
    if letter in PUNCTUATION:
        inside = before.isalpha() and (after.isalpha() or letter in "„‚")
        return not (inside and letter in OUTSIDE_WORDS)
    if not letter.isalpha() or letter in RARE or (letter.isupper() and before.isalpha() and before.islower()):
        return False
    beside = [side for side in (before, after) if side.isalpha()]
    return not beside or any(side.isascii() for side in beside)


def warn_about_encoding(file: str, guess: EncodingGuess) -> None:
    """Report in one line, as a warning, that a file is not read as UTF-8."""
    warnings.warn(f"{file} is read as {guess.name}, because {guess.reason}. {CHANGE}", UserWarning, stacklevel=2)


def as_utf8(stream: BinaryIO, encoding: str, file: str) -> BinaryIO:
    """The same text as UTF-8."""
    return cast("BinaryIO", io.BufferedReader(_Converted(stream, encoding, file), BLOCK))


class _Converted(io.RawIOBase):
    """Bytes of an encoding, read as bytes of UTF-8. It can be moved forward, by reading."""

    def __init__(self, stream: BinaryIO, encoding: str, file: str) -> None:
        self.stream, self.encoding, self.file = stream, encoding, file
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.ready, self.place, self.lines, self.ended = b"", 0, 1, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or place < self.place:
            raise io.UnsupportedOperation("only forward")
        while self.place < place and self.readinto(bytearray(min(BLOCK, place - self.place))):
            pass
        return self.place

    def tell(self) -> int:
        return self.place

    def readinto(self, buffer: Any) -> int:
        while not self.ready and not self.ended:
            self._convert()
        size = min(len(buffer), len(self.ready))
        buffer[:size] = self.ready[:size]
        self.ready = self.ready[size:]
        self.place += size
        return size

    def _convert(self) -> None:
        block = self.stream.read(BLOCK)
        self.ended = not block
        try:
            text = self.decoder.decode(block, final=self.ended)
        except UnicodeError as error:
            raise self._fault(error) from error
        if self.place == 0:
            text = text.removeprefix("\ufeff")
        try:
            self.ready = text.encode(UTF8)
        except UnicodeEncodeError as error:
            raise self._fault(error) from error
        self.lines += text.count("\n")

    def _fault(self, error: UnicodeError) -> DataError:
        line = self.lines
        if isinstance(error, UnicodeDecodeError):
            line += error.object[: error.start].decode(self.encoding, "ignore").count("\n")
        reason = getattr(error, "reason", str(error))
        return DataError(f"is not {self.encoding}: {reason}", file=self.file, line=line, fix=f"Is it damaged? {CHANGE}")


def resolve_byte_order(encoding: str, start: bytes, file: str) -> str:
    """The encoding that the user named, for a file with this beginning: with the byte order it has.

    Raises a DataError where the file begins with the byte order mark of another encoding.
    """
    if start.startswith(BINARY):
        return UTF8
    for mark, name in SIGNATURES:
        if start.startswith(mark):
            if name.startswith(encoding):
                return name
            raise DataError(
                f"begins with the byte order mark of {name}, but the encoding {encoding} was given",
                file=file,
                fix="Leave --encoding out (encoding= in Python).",
            )
    if encoding in ("utf-16", "utf-32"):
        guess = _by_zeros(start)
        return guess.name if guess is not None and guess.name.startswith(encoding) else f"{encoding}-le"
    return encoding
