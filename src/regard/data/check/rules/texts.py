"""Check each text: empty, damaged encoding, control characters, markup."""

from __future__ import annotations

import re

from regard.data.check.collect import FindingCollector, excerpt
from regard.data.check.rules import mojibake
from regard.data.check.rules.checked_row import CheckedRow
from regard.errors import pluralize

MARKUP = re.compile(
    r"</?(?:p|br|div|span|a|b|i|em|strong|li|ul|td|tr|table|img|h[1-6])\b[^<>]{0,200}>|&(?:[a-z]{2,8}|#\d{2,5}|#x[0-9a-f]{2,5});",
    re.I,
)
# Texts with one of these characters are examined more closely. Most texts have none.
SUSPICIOUS = re.compile(
    "[^\\x20-\\x7e\\t\\n\\r\u00a1-\u00ac\u00ae-\u00c1\u00c4-\u00df\u00e0\u00e1\u00e3-\u00ef\u00f1-\u00ff\u0400-\u04ff\u4e00-\u9fff]"
)


class TextRule:
    """Checks every text of every row once."""

    def __init__(self, collector: FindingCollector) -> None:
        self.collector = collector
        self.last_context = ""

    def check_row(self, row: CheckedRow) -> None:
        for role, text in row.texts:
            if role == "context":
                if text == self.last_context:
                    continue  # several questions have the same context
                self.last_context = text
            if not text or text.isspace():
                message = f"the {role} {'has only spaces' if text else 'is empty'}"
                self.collector.add("empty-text", row.place, message, split=row.split)
                continue
            if not text.isascii() or not text.isprintable():
                self._check_characters(row, role, text)
            if "<" in text or "&" in text:
                self._check_markup(row, role, text)

    def _check_characters(self, row: CheckedRow, role: str, text: str) -> None:
        damage = mojibake.find_mojibake(text)
        if damage is not None:
            message = f'the {role} contains "{damage[:20]}", which should be "{mojibake.repair_mojibake(damage)[:20]}"'
            self.collector.add("mojibake", row.place, message, text=text, split=row.split)
            text = mojibake.repair_mojibake(text)
        if SUSPICIOUS.search(text) is None:
            return
        if mojibake.REPLACED in text:
            message = f"the {role} has {pluralize(text.count(mojibake.REPLACED), 'replacement character')} (U+FFFD)"
            self.collector.add("replacement-character", row.place, message, text=text, split=row.split)
        for kind, pattern in (
            ("control-character", mojibake.CONTROL),
            ("control-character", mojibake.PRIVATE),
            ("invisible-character", mojibake.INVISIBLE),
        ):
            match = pattern.search(text)
            if match is not None:
                message = f"character {match.start() + 1} of the {role} is {mojibake.describe_character(match.group())}"
                self.collector.add(kind, row.place, message, text=text, split=row.split)

    def _check_markup(self, row: CheckedRow, role: str, text: str) -> None:
        match = MARKUP.search(text)
        if match is not None:
            message = f'the {role} contains "{excerpt(match.group(), 30)}"'
            self.collector.add("markup", row.place, message, text=text, split=row.split)

    def finish(self) -> None:
        """Nothing to do: findings are added row by row."""
