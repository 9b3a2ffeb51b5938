"""Detect and repair damage from wrong encodings (mojibake)."""

from __future__ import annotations

import re

# The bytes 0x80 to 0xBF in Windows-1252, and in Latin-1.
_TRAILS = "".join(bytes([byte]).decode("cp1252", "ignore") + chr(byte) for byte in range(0x80, 0xC0))
_TRAIL = f"[{re.escape(_TRAILS)}]"
# Sequences that hardly occur in any language: Â or Ã and such a character, â€ and one (quotes), ðŸ and two (emoji).
CERTAIN = re.compile(
    f"[ÂÃ]{_TRAIL}|[ÄÅ](?![“”’‘»«…]){_TRAIL}|â[€‚„†‡ˆ‰\x80-\x8a]{_TRAIL}|ð[Ÿ\x9f]{_TRAIL}{{2}}|ï»¿|ï¿½"
)
# Other alphabets appear as many pairs of a letter and such a character.
REPEATED = re.compile(f"(?:[Ã-ß]{_TRAIL} ?){{4,}}|(?:[à-ï]{_TRAIL}{{2}} ?){{3,}}")
_LEADS = re.compile(f"(?:[Â-ß]{_TRAIL}|[à-ï]{_TRAIL}{{2}}|[ð-ô]{_TRAIL}{{3}})+")
_BYTES = {
    ord(bytes([byte]).decode("cp1252")): byte for byte in range(0x80, 0xA0) if byte not in b"\x81\x8d\x8f\x90\x9d"
}

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
PRIVATE = re.compile("[\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff]")
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
REPLACED = "\ufffd"


def find_mojibake(text: str) -> str | None:
    """The first part of the text that is UTF-8 decoded as Latin-1, or None."""
    match = CERTAIN.search(text) or REPEATED.search(text)
    if match is None or repair_mojibake(text) == text:
        return None
    return match.group()


def repair_mojibake(text: str) -> str:
    """The text with mojibake decoded correctly."""
    if text.isascii() or not (CERTAIN.search(text) or REPEATED.search(text)):
        return text
    return _LEADS.sub(lambda match: _decoded(match.group()), text)


def _decoded(part: str) -> str:
    try:
        raw = bytes(_BYTES.get(ord(letter), ord(letter)) for letter in part)
        return raw.decode("utf-8")
    except (UnicodeDecodeError, ValueError):
        return part


def clean(text: str) -> str:
    """The text without mojibake, control and invisible characters. Lost letters are not restored."""
    if text.isascii() and text.isprintable():
        return text
    fixed = repair_mojibake(text).replace("\u2028", "\n").replace("\u2029", "\n")
    return INVISIBLE.sub("", CONTROL.sub(lambda match: _in_windows_1252(match.group()), fixed))


def describe_character(letter: str) -> str:
    """A character as its code point, and its meaning in Windows-1252: `U+0096 (in Windows-1252: "–")`."""
    code_point = f"U+{ord(letter):04X}"
    in_windows = _in_windows_1252(letter)
    return f'{code_point} (in Windows-1252: "{in_windows}")' if in_windows else code_point


def _in_windows_1252(control: str) -> str:
    """The character that Windows-1252 has instead of a control character; empty if there is none."""
    if not "\x80" <= control <= "\x9f":
        return ""
    return bytes([ord(control)]).decode("cp1252", "ignore")
