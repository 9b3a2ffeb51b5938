"""Check translations: not translated, or of very different length."""

from __future__ import annotations

import math
from array import array

import numpy as np

from regard.data.check.collect import FindingCollector, excerpt
from regard.data.check.row_store import RowStore
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.records import TranslateRecord

MAX_RATIO = 3.0  # of the length ratio of a pair to the median ratio
MIN_LENGTH = 50  # characters of the longer text; ratios of short texts vary more
MIN_WORDS = 3


class PairRule:
    """Stores the length ratio of every pair, because the median is known only after the last row."""

    def __init__(self, collector: FindingCollector, rows: RowStore) -> None:
        self.collector = collector
        self.rows = rows
        self.log_ratios = array("f")
        self.max_lengths = array("I")
        self.row_numbers = array("Q")

    def check_row(self, row: CheckedRow) -> None:
        record = row.record
        if isinstance(record, TranslateRecord):
            self._check_translation(row, record)

    def _check_translation(self, row: CheckedRow, record: TranslateRecord) -> None:
        source = record.source.strip()
        target = record.target.strip()
        if not source or not target:
            return
        self.log_ratios.append(math.log(len(target) / len(source)))
        self.max_lengths.append(min(max(len(target), len(source)), 1 << 31))
        self.row_numbers.append(len(self.rows) - 1)
        if source.casefold() == target.casefold() and any(letter.isalpha() for letter in source):
            words = len(source.split())
            if words > 1 or len(source) > 12:  # names and short words are the same in many languages
                severity = "warning" if words >= MIN_WORDS else "note"
                message = f'source and target are both "{excerpt(source, 50)}"'
                self.collector.add("untranslated", row.place, message, text=source, split=row.split, severity=severity)

    def finish(self) -> None:
        if len(self.log_ratios) < 2:
            return
        log_ratios = np.frombuffer(self.log_ratios, np.float32)
        max_lengths = np.frombuffer(self.max_lengths, np.uint32)
        median = float(np.median(log_ratios))
        is_far = np.abs(log_ratios - median) > math.log(MAX_RATIO)
        for index in np.flatnonzero(is_far & (max_lengths >= MIN_LENGTH)):
            number = self.row_numbers[int(index)]
            ratio = math.exp(float(log_ratios[index]))
            message = (
                f"the target is {ratio:.2g} times as long as the source; the median ratio is {math.exp(median):.2g}"
            )
            place = self.rows.place(number)
            text = self.rows.text(number)
            self.collector.add("length-mismatch", place, message, text=text, split=self.rows.split(number))
