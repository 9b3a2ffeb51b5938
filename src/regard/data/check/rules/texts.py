"""Checks of every text by itself: empty, damaged, or full of what is no text."""

from __future__ import annotations

import re

from regard.data.check.collect import FindingCollector, excerpt
from regard.data.check.rules import encoding
from regard.data.check.rules.checked_row import CheckedRow

MARKUP = re.compile(
    r"</?(?:p|br|div|span|a|b|i|em|strong|li|ul|td|tr|table|img|h[1-6])\b[^<>]{0,200}>|&(?:[a-z]{2,8}|#\d{2,5}|#x[0-9a-f]{2,5});",
    re.I,
)
ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}")
RUN = re.compile(r"([^\s.\-_=*#~])\1{49,}")
RUN_AFAR = re.compile(r"(.)\1\1\1", re.DOTALL)  # such a run in every twelfth character, which is quick to rule out
# Where one of these is in a text, it is looked at more closely. Most texts hold none of them.
ODD = re.compile(
    "[^\\x20-\\x7e\\t\\n\\r\u00a1-\u00ac\u00ae-\u00c1\u00c4-\u00df\u00e0\u00e1\u00e3-\u00ef\u00f1-\u00ff\u0400-\u04ff\u4e00-\u9fff]"
)


class TextRule:
    """Every text of every row, once."""

    def __init__(self, gather: FindingCollector) -> None:
        self.gather, self.context = gather, ""

    def check_row(self, row: CheckedRow) -> None:
        for role, text in row.texts:
            if role == "context":
                if text == self.context:
                    continue  # many questions have one context
                self.context = text
            if not text or text.isspace():
                what = f"the {role} is {'empty' if not text else 'only space'}"
                self.gather.add("empty-text", row.place, what, split=row.split)
                continue
            if not text.isascii() or not text.isprintable():
                self._characters(row, role, text)
            if "<" in text or "&" in text:
                self._found("markup", MARKUP.search(text), row, role, text)
            if "\\" in text:
                self._found("escaped", ESCAPED.search(text), row, role, text)
            if len(text) > 50:
                self._run(row, role, text)

    def _found(self, kind: str, match: re.Match[str] | None, row: CheckedRow, role: str, text: str) -> None:
        if match is not None:
            what = f'the {role} holds "{excerpt(match.group(), 30)}"'
            self.gather.add(kind, row.place, what, text=text, split=row.split)

    def _characters(self, row: CheckedRow, role: str, text: str) -> None:
        damage = encoding.mojibake(text)
        if damage is not None:
            what = f'the {role} holds "{damage[:20]}", which should be "{encoding.repaired(damage)[:20]}"'
            self.gather.add("mojibake", row.place, what, text=text, split=row.split)
            text = encoding.repaired(text)
        if ODD.search(text) is None:
            return
        if encoding.REPLACED in text:
            what = f"the {role} has {text.count(encoding.REPLACED)} of U+FFFD"
            self.gather.add("replacement", row.place, what, text=text, split=row.split)
        if encoding.BOM in text:
            at = text.index(encoding.BOM) + 1
            what = f"character {at} of the {role} is a byte order mark (U+FEFF)"
            self.gather.add("bom", row.place, what, text=text, split=row.split, severity="warning")
        for kind, pattern in (
            ("control", encoding.CONTROL),
            ("control", encoding.PRIVATE),
            ("invisible", encoding.INVISIBLE),
        ):
            match = pattern.search(text)
            if match is not None:
                what = f"character {match.start() + 1} of the {role} is {encoding.named(match.group())}"
                self.gather.add(kind, row.place, what, text=text, split=row.split)

    def _run(self, row: CheckedRow, role: str, text: str) -> None:
        match = RUN.search(text) if RUN_AFAR.search(text[::12]) else None
        if match is not None:
            length = match.end() - match.start()
            what = f'the {role} has "{match.group(1)}" {length:,} times in a row'
            self.gather.add("run", row.place, what, text=text, split=row.split)

    def finish(self) -> None:
        """Everything was said on the way."""
