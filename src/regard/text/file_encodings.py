"""Encodings of text files: detection, and conversion to UTF-8.

All other modules read UTF-8. A file in UTF-16, UTF-32 or cp1252 is detected from its bytes, or read in the encoding
given by the user, and converted while it is read.
"""

from __future__ import annotations

import codecs
import io
import re
import warnings
from collections.abc import Iterable
from typing import BinaryIO, NamedTuple, cast

from regard.errors import DataError, InputError, did_you_mean
from regard.text.forward_stream import ForwardStream

UTF8 = "utf-8"
BLOCK = 1 << 16  # bytes decoded at once
MAX_SCANNED = 1 << 26  # bytes searched for the first character that is not ASCII
SIGNATURES = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark starts with that of UTF-16
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

# Characters of Western European texts outside ASCII: punctuation, and letters next to ASCII letters.
PUNCTUATION = set("€‚„…†‘’“”•–—™¡¢£¥§©ª«®°±²³·º»¼½¾¿\xa0\xad")
OUTSIDE_WORDS = set("‚„“”•«»¡¿…†©®°")
RARE = set("ÐÞÝðþýƒŠŽŸ")  # in other encodings these bytes are letters of other languages
MAX_EXAMINED = 20_000  # characters
INVALID = re.compile("[\udc80-\udcff]+")
VALID = re.compile("[^\x00-\x7f\udc80-\udcff]")


class EncodingGuess(NamedTuple):
    """A detected encoding and the reason."""

    name: str
    reason: str


UTF8_GUESS = EncodingGuess(UTF8, "")


def parse_encoding(name: str) -> str:
    """The canonical name of an encoding, `"latin1"` → `"iso8859-1"`. Raises InputError for an unknown name."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError, TypeError):
        codec = None
    if codec is None or codec.name in NOT_FOR_FILES or codec.incrementaldecoder is None or not _is_for_text(codec):
        raise InputError(f'"{name:.40}" is not an encoding of text files.{did_you_mean(name[:40], COMMON)}')
    return UTF8 if codec.name == "utf-8-sig" else codec.name


def _is_for_text(codec: codecs.CodecInfo) -> bool:
    return bool(getattr(codec, "_is_text_encoding", True))


def detect_encoding(blocks: Iterable[bytes]) -> EncodingGuess:
    """Detect the encoding of a file from its first blocks.

    1. A byte order mark, or the pattern of zero bytes, shows UTF-16 or UTF-32.
    2. Valid UTF-8 is always read as UTF-8.
    3. The file is read as cp1252 if bytes in at least two places are not UTF-8, hardly any character outside ASCII
       is valid UTF-8, and those bytes are plausible in cp1252.
    4. Otherwise it is read as UTF-8, so that reading fails at the first wrong byte.
    """
    decoder = codecs.getincrementaldecoder(UTF8)("surrogateescape")
    sample = b""
    scanned = 0
    invalid = 0
    valid = 0
    for number, block in enumerate(blocks):
        if number == 0:
            guess = _from_signature(block) or _from_zero_bytes(block)
            if guess is not None:
                return guess
        scanned += len(block)
        text = "" if block.isascii() and not decoder.getstate()[0] else decoder.decode(block)
        if text and not text.isascii():
            invalid += len(INVALID.findall(text))
            valid += len(VALID.findall(text))
            sample += block[: 4 * MAX_EXAMINED]
            if valid > 0.05 * invalid:
                return UTF8_GUESS
            if invalid > 100:
                break
        if scanned > MAX_SCANNED:
            break
    if invalid >= 2 and valid <= 0.05 * invalid and _is_plausible_cp1252(sample):
        return EncodingGuess("cp1252", "it is not valid UTF-8")
    return UTF8_GUESS


def _from_signature(start: bytes) -> EncodingGuess | None:
    if start.startswith(BINARY):
        return UTF8_GUESS
    for mark, name in SIGNATURES:
        if start.startswith(mark):
            return EncodingGuess(name, "it starts with its byte order mark") if name != UTF8 else UTF8_GUESS
    return None


def _from_zero_bytes(start: bytes) -> EncodingGuess | None:
    """UTF-16 and UTF-32 without a byte order mark: their zero bytes are at even, odd or every fourth position."""
    if b"\0" not in start:
        return None
    quarter = len(start) // 4
    half = len(start) // 2
    zeros = [start[offset : 4 * quarter : 4].count(0) for offset in range(4)]
    even = start[: 2 * half : 2].count(0)
    odd = start[1 : 2 * half : 2].count(0)
    encoding = None
    if quarter > 1 and zeros[3] == quarter and zeros[2] > 0.9 * quarter and zeros[0] < 0.1 * quarter:
        encoding = "utf-32-le"
    elif quarter > 1 and zeros[0] == quarter and zeros[1] > 0.9 * quarter and zeros[3] < 0.1 * quarter:
        encoding = "utf-32-be"
    elif half > 1 and min(even, odd) <= 0.02 * half:
        name = "utf-16-le" if odd > even else "utf-16-be"
        is_latin = max(even, odd) > 0.4 * half
        is_other_script = min(even, odd) == 0 and max(even, odd) > 1 and not _is_text(start.replace(b"\0", b""), UTF8)
        encoding = name if is_latin or is_other_script else None
    if encoding is None or not _is_text(start, encoding):
        return None
    return EncodingGuess(encoding, "of its zero bytes")


def _is_text(start: bytes, name: str) -> bool:
    """True if the bytes are text in that encoding; the last character may be incomplete."""
    try:
        text = codecs.getincrementaldecoder(name)().decode(start)
    except UnicodeDecodeError:
        return False
    unprintable = sum(not letter.isprintable() and not letter.isspace() for letter in text[:MAX_EXAMINED])
    return "\0" not in text and unprintable <= 0.02 * len(text[:MAX_EXAMINED])


def _is_plausible_cp1252(sample: bytes) -> bool:
    """True if, in cp1252, nearly all bytes above 127 are letters in Western European words or common punctuation."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    positions = [match.start() for match in re.finditer(r"[^\x00-\x7f]", text)][:MAX_EXAMINED]
    plausible = sum(_is_plausible(text[max(at - 1, 0) : at], text[at], text[at + 1 : at + 2]) for at in positions)
    return plausible >= 0.9 * len(positions)


def _is_plausible(before: str, letter: str, after: str) -> bool:
    if letter in PUNCTUATION:
        inside = before.isalpha() and (after.isalpha() or letter in "„‚")
        return not (inside and letter in OUTSIDE_WORDS)
    if not letter.isalpha() or letter in RARE or (letter.isupper() and before.isalpha() and before.islower()):
        return False
    neighbors = [neighbor for neighbor in (before, after) if neighbor.isalpha()]
    return not neighbors or any(neighbor.isascii() for neighbor in neighbors)


def warn_about_encoding(file: str, guess: EncodingGuess) -> None:
    """Warn that a file is read in another encoding than UTF-8."""
    warnings.warn(f"{file} is read as {guess.name}, because {guess.reason}. {CHANGE}", UserWarning, stacklevel=2)


def as_utf8(stream: BinaryIO, encoding: str, file: str) -> BinaryIO:
    """A stream of the same text in UTF-8. Reading raises DataError with the line of a byte that cannot be decoded."""
    return cast("BinaryIO", io.BufferedReader(_Utf8Stream(stream, encoding, file), BLOCK))


class _Utf8Stream(ForwardStream):
    """Converts a stream in some encoding to UTF-8, block by block."""

    def __init__(self, stream: BinaryIO, encoding: str, file: str) -> None:
        super().__init__()
        self.stream = stream
        self.encoding = encoding
        self.file = file
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.converted = b""
        self.lines = 1
        self.ended = False

    def _read(self, size: int) -> bytes:
        while not self.converted and not self.ended:
            self._convert()
        data = self.converted[:size]
        self.converted = self.converted[size:]
        return data

    def _convert(self) -> None:
        block = self.stream.read(BLOCK)
        self.ended = not block
        try:
            text = self.decoder.decode(block, final=self.ended)
        except UnicodeError as error:
            raise self._decoding_error(error) from error
        if self.position == 0:
            text = text.removeprefix("\ufeff")
        try:
            self.converted = text.encode(UTF8)
        except UnicodeEncodeError as error:
            raise self._decoding_error(error) from error
        self.lines += text.count("\n")

    def _decoding_error(self, error: UnicodeError) -> DataError:
        line = self.lines
        if isinstance(error, UnicodeDecodeError):
            line += error.object[: error.start].decode(self.encoding, "ignore").count("\n")
        reason = getattr(error, "reason", str(error))
        return DataError(f"is not {self.encoding}: {reason}", file=self.file, line=line, fix=f"Is it damaged? {CHANGE}")


def resolve_byte_order(encoding: str, start: bytes, file: str) -> str:
    """The encoding given by the user, with the byte order of this file: `"utf-16"` → `"utf-16-le"`.

    `start` is the beginning of the file. Raises DataError if it is the byte order mark of another encoding.
    """
    if start.startswith(BINARY):
        return UTF8
    for mark, name in SIGNATURES:
        if start.startswith(mark):
            if name.startswith(encoding):
                return name
            raise DataError(
                f"starts with the byte order mark of {name}, but the encoding {encoding} was given",
                file=file,
                fix="Remove --encoding (encoding= in Python).",
            )
    if encoding in ("utf-16", "utf-32"):
        guess = _from_zero_bytes(start)
        return guess.name if guess is not None and guess.name.startswith(encoding) else f"{encoding}-le"
    return encoding
