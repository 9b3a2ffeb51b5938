"""Damage from wrong encodings: how it looks, and the text without it where that is certain."""

from __future__ import annotations

import re

# The bytes 0x80 to 0xBF as Windows-1252 shows them, or as Latin-1 where it shows nothing.
_TRAILS = "".join(bytes([byte]).decode("cp1252", "ignore") + chr(byte) for byte in range(0x80, 0xC0))
_TRAIL = f"[{re.escape(_TRAILS)}]"
# What hardly any language writes: Â or Ã before such a sign, â€ before one (quotes, dashes), ðŸ before two (emoji).
CERTAIN = re.compile(
    f"[ÂÃ]{_TRAIL}|[ÄÅ](?![“”’‘»«…]){_TRAIL}|â[€‚„†‡ˆ‰\x80-\x8a]{_TRAIL}|ð[Ÿ\x9f]{_TRAIL}{{2}}|ï»¿|ï¿½"
)
# Other alphabets come as a letter and a sign, over and over.
REPEATED = re.compile(f"(?:[Ã-ß]{_TRAIL} ?){{4,}}|(?:[à-ï]{_TRAIL}{{2}} ?){{3,}}")
_LEADS = re.compile(f"(?:[Â-ß]{_TRAIL}|[à-ï]{_TRAIL}{{2}}|[ð-ô]{_TRAIL}{{3}})+")
_BYTES = {
    ord(bytes([byte]).decode("cp1252")): byte for byte in range(0x80, 0xA0) if byte not in b"\x81\x8d\x8f\x90\x9d"
}

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
PRIVATE = re.compile("[\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff]")
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069]")
REPLACED, BOM = "\ufffd", "\ufeff"


def mojibake(text: str) -> str | None:
    """The first stretch that is UTF-8 read as Latin-1, or None."""
    found = CERTAIN.search(text) or REPEATED.search(text)
    return None if found is None or repaired(text) == text else found.group()


def repaired(text: str) -> str:
    """Every such stretch decoded as it should have been; the rest as it is."""
    if text.isascii() or not (CERTAIN.search(text) or REPEATED.search(text)):
        return text
    return _LEADS.sub(lambda match: _decoded(match.group()), text)


def _decoded(stretch: str) -> str:
    try:
        raw = bytes(_BYTES.get(ord(letter), ord(letter)) for letter in stretch)
        return raw.decode("utf-8")
    except (UnicodeDecodeError, ValueError):
        return stretch


def clean(text: str) -> str:
    """Without mojibake, byte order marks, control and invisible characters; what is lost already stays lost."""
    if text.isascii() and text.isprintable():
        return text
    fixed = repaired(text).replace(BOM, "").replace("\u2028", "\n").replace("\u2029", "\n")
    return INVISIBLE.sub("", CONTROL.sub(lambda match: _windows(match.group()), fixed))


def named(letter: str) -> str:
    """A character as U+0096, and what Windows-1252 means by it."""
    meant = _windows(letter)
    return f"U+{ord(letter):04X}" + (f' (in Windows-1252 it is "{meant}")' if meant else "")


def _windows(control: str) -> str:
    """What Windows-1252 has in the place of a control character; nothing where it has none."""
    return bytes([ord(control)]).decode("cp1252", "ignore") if "\x80" <= control <= "\x9f" else ""
