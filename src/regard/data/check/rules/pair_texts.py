"""Checks of two texts that belong together: not translated, unequal, or the same."""

from __future__ import annotations

import math
from array import array

import numpy as np

from regard.data.check.collect import FindingCollector, excerpt
from regard.data.check.row_store import RowStore
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.records import PairRecord, TranslateRecord

TIMES = 3.0  # as much longer than the usual ratio
LEAST = 50  # characters of the longer text; short texts differ by nature
WORDS = 3


class PairRule:
    """Lengths of every pair are kept as one number, as what is unequal shows only at the end."""

    def __init__(self, gather: FindingCollector, rows: RowStore) -> None:
        self.gather, self.rows = gather, rows
        self.ratios, self.longer = array("f"), array("I")
        self.numbers = array("Q")

    def check_row(self, row: CheckedRow) -> None:
        record = row.record
        if isinstance(record, TranslateRecord):
            self._translation(row, record)
        elif isinstance(record, PairRecord):
            first = record.first.strip().casefold()
            if first and first == record.second.strip().casefold():
                what = "the first text and the second are the same"
                self.gather.add("same-pair", row.place, what, text=record.first, split=row.split)

    def _translation(self, row: CheckedRow, record: TranslateRecord) -> None:
        source, target = record.source.strip(), record.target.strip()
        if not source or not target:
            return
        self.ratios.append(math.log(len(target) / len(source)))
        self.longer.append(min(max(len(target), len(source)), 1 << 31))
        self.numbers.append(len(self.rows) - 1)
        if source.casefold() == target.casefold() and any(letter.isalpha() for letter in source):
            words = len(source.split())
            if words > 1 or len(source) > 12:  # a name or a "No." is the same in many languages
                severity = "warning" if words >= WORDS else "note"
                what = f'source and target are both "{excerpt(source, 50)}"'
                self.gather.add("untranslated", row.place, what, text=source, split=row.split, severity=severity)

    def finish(self) -> None:
        if len(self.ratios) < 2:
            return
        ratios, longer = np.frombuffer(self.ratios, np.float32), np.frombuffer(self.longer, np.uint32)
        usual = float(np.median(ratios))
        far = np.abs(ratios - usual) > math.log(TIMES)
        for place in np.flatnonzero(far & (longer >= LEAST)):
            number = self.numbers[int(place)]
            ratio = math.exp(float(ratios[place]))
            what = f"the target is {ratio:.2g} times as long as the source, where {math.exp(usual):.2g} is usual"
            self.gather.add(
                "unequal", self.rows.place(number), what, text=self.rows.text(number), split=self.rows.split(number)
            )
