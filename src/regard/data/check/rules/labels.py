"""Check labels: their counts, similar names, missing labels, and labels that are not in the training data."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator

import numpy as np

from regard.data.check.collect import FindingCollector, quoted
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.check.rules.similar_names import normalize_name, similar_names
from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, Place, TagRecord
from regard.errors import pluralize

MAX_LABELS = 20_000  # distinct labels that are counted; with more of them the column does not hold labels
MAX_PLACES = 1_000_000  # rows with numbers whose place is stored
PLACEHOLDERS = {"", "na", "nan", "none", "null", "unknown", "tbd", "undefined", "missing", "nil"}
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


class LabelRule:
    """Counts each label in each split, and stores where it occurs first."""

    def __init__(self, collector: FindingCollector) -> None:
        self.collector = collector
        self.counts: dict[str, Counter[str]] = {}  # by split
        self.first_places: dict[tuple[str, str], Place] = {}  # by split and label
        self.unlabeled: dict[str, tuple[Place, int]] = {}  # by split: first place and count
        self.labeled: Counter[str] = Counter()  # rows by split
        self.numbers = array("d")
        self.number_places: list[Place] = []
        self.is_tagging = False

    def check_row(self, row: CheckedRow) -> None:
        record = row.record
        counts = self.counts.get(row.split)
        if counts is None:
            counts = self.counts[row.split] = Counter()
        names: tuple[str, ...] | None
        if isinstance(record, ClassifyRecord | PairRecord):
            names = self._label_names(row, record.label)
        elif isinstance(record, TagRecord):
            self.is_tagging = True
            names = None if record.tags is None else tuple(_entity_labels(record.tags))
        elif isinstance(record, AnswerRecord):
            names = None if record.answers is None else ()
        else:
            return
        if names is None:
            place, count = self.unlabeled.get(row.split, (row.place, 0))
            self.unlabeled[row.split] = (place, count + 1)
            return
        self.labeled[row.split] += 1
        for name in names:
            if name not in counts:
                if len(counts) >= MAX_LABELS:
                    continue
                self.first_places[row.split, name] = row.place
            counts[name] += 1

    def _label_names(self, row: CheckedRow, label: object) -> tuple[str, ...] | None:
        if label is None:
            return None
        if isinstance(label, float):
            self.numbers.append(label)
            if len(self.number_places) < MAX_PLACES:
                self.number_places.append(row.place)
            return ()
        if isinstance(label, tuple):
            return tuple(dict.fromkeys(label))
        return (str(label),)

    @property
    def total(self) -> dict[str, int]:
        """Rows of each label in all splits, the most frequent first."""
        total: Counter[str] = Counter()
        for counts in self.counts.values():
            total.update(counts)
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))

    @property
    def number_range(self) -> dict[str, float]:
        """Minimum, mean and maximum of numeric labels; empty if there are none."""
        if not self.numbers:
            return {}
        values = np.frombuffer(self.numbers)
        return {"min": float(values.min()), "mean": float(values.mean()), "max": float(values.max())}

    def finish(self) -> None:
        for split, (place, count) in self.unlabeled.items():
            if self.labeled[split]:
                message = f"the row has no label, but {self.labeled[split]:,} others have one"
                self.collector.add("missing-label", place, message, split=split, count=count)
        train = next(iter(self.counts), "")
        for split, counts in self.counts.items():
            if self._has_too_many(split, counts):
                continue
            if split == train:
                self._check_single_label(split, counts)
                unusual = self._check_unusual(split, counts)
                others = {name: count for name, count in _without_similar(counts).items() if name not in unusual}
                self._check_balance(split, Counter(others))
            else:
                self._compare_with_train(train, split)
            self._check_similar(split, counts)
        self._check_outliers()

    def _has_too_many(self, split: str, counts: Counter[str]) -> bool:
        if len(counts) < MAX_LABELS and len(counts) <= max(20, 0.5 * self.labeled[split]):
            return False
        first = min((self.first_places[split, name] for name in counts), key=lambda place: place.line or 0)
        message = f"{len(counts):,} different labels in {pluralize(self.labeled[split], 'row')}"
        self.collector.add("too-many-labels", first, message, split=split)
        return True

    def _check_single_label(self, split: str, counts: Counter[str]) -> None:
        rows = self.labeled[split]
        if self.is_tagging:
            if not counts and rows > 1:
                message = f"none of {rows:,} sentences has an entity"
                self.collector.add("no-entities", Place("the data"), message, split=split)
            return
        values = np.frombuffer(self.numbers) if self.numbers else np.zeros(0)
        same_name = len(counts) == 1 and next(iter(counts.values())) == rows
        same_number = len(values) == rows and rows > 0 and values.min() == values.max()
        if rows > 1 and (same_name or same_number):
            name = next(iter(counts), f"{values[0]:g}" if len(values) else "")
            place = self.first_places.get((split, name)) or self.number_places[0]
            self.collector.add("single-label", place, f'all {rows:,} rows have the label "{name}"', split=split)

    def _check_unusual(self, split: str, counts: Counter[str]) -> set[str]:
        """Report and return placeholders such as "N/A", and words among numbers."""
        unusual = set()
        numbers = [name for name in counts if NUMBER.fullmatch(name)]
        rows_with_numbers = sum(counts[name] for name in numbers)
        for name, count in counts.items():
            normalized = normalize_name(name)
            is_placeholder = normalized in PLACEHOLDERS and (not normalized or count < 0.5 * self.labeled[split])
            is_word_among_numbers = len(numbers) >= 2 and name not in numbers and count * 10 <= rows_with_numbers
            if is_placeholder:
                message = f'the label "{name}" is a placeholder for a missing label'
            elif is_word_among_numbers:
                message = f'the label "{name}" is not a number, unlike {quoted(sorted(numbers)[:3])}'
            else:
                continue
            place = self.first_places[split, name]
            self.collector.add("unusual-label", place, message, split=split, key=name, count=count)
            unusual.add(name)
        return unusual

    def _check_balance(self, split: str, counts: Counter[str]) -> None:
        if len(counts) < 2 or self.is_tagging:
            return
        (frequent, max_count), *_, (rare, min_count) = counts.most_common()
        if max_count >= 10 * min_count and max_count >= 20:
            ratio = max_count / min_count
            message = f'"{frequent}" has {max_count:,} rows, "{rare}" only {min_count:,} (ratio {ratio:,.0f} to 1)'
            severity = "warning" if ratio >= 20 else "note"
            self.collector.add("imbalance", self.first_places[split, rare], message, split=split, severity=severity)
        mean_count = self.labeled[split] / len(counts)
        for name, count in counts.items():
            if (count <= 2 and mean_count >= 20) or (count == 1 and mean_count >= 4):
                message = f'the label "{name}" has only {pluralize(count, "row")} of {self.labeled[split]:,}'
                place = self.first_places[split, name]
                self.collector.add("rare-label", place, message, split=split, key=name, count=count)

    def _compare_with_train(self, train: str, split: str) -> None:
        train_counts = self.counts[train]
        counts = self.counts[split]
        if not train_counts or not counts:
            return
        for name in counts:
            if name not in train_counts:
                message = f'the label "{name}" occurs in {split}, but not in {train}'
                place = self.first_places[split, name]
                key = f"{split} {name}"
                self.collector.add("unknown-label", place, message, split=split, key=key, count=counts[name])
        absent = [name for name in _without_similar(train_counts) if name not in counts]
        if absent and len(counts) > 1:
            place = next(place for (own, _), place in self.first_places.items() if own == split)
            message = f"{split} has no row with {quoted(absent)}"
            self.collector.add("label-not-in-split", place, message, split=split, key=split)

    def _check_similar(self, split: str, counts: Counter[str]) -> None:
        for rare, frequent, relation in similar_names(counts):
            message = f'the label "{rare}" ({counts[rare]:,}) {relation} "{frequent}" ({counts[frequent]:,})'
            self.collector.add(
                "similar-label",
                self.first_places[split, rare],
                message,
                split=split,
                key=f"{split} {rare}",
                fix=f'Write "{frequent}".',
                count=counts[rare],
            )

    def _check_outliers(self) -> None:
        """Numbers farther from the median than 5 times the range between the 10th and the 90th percentile."""
        if len(self.numbers) < 10:
            return
        values = np.frombuffer(self.numbers)
        low, median, high = np.percentile(values, (10, 50, 90))
        max_distance = 5 * max(float(high - low), 1e-9)
        for number in np.flatnonzero(np.abs(values - median) > max_distance)[:1000]:
            if number < len(self.number_places) and high > low:
                message = f"the label is {values[number]:g}, but nearly all labels are between {low:g} and {high:g}"
                self.collector.add("label-outlier", self.number_places[number], message)


def _without_similar(counts: Counter[str]) -> Counter[str]:
    """Counts without labels that are reported as similar to others, so that they are not reported as rare too."""
    similar = {rare for rare, _, _ in similar_names(counts)}
    return Counter({name: count for name, count in counts.items() if name not in similar})


def _entity_labels(tags: tuple[str, ...]) -> Iterator[str]:
    """The label of each entity; every tag if the tags are not B- and I-."""
    for tag in tags:
        if tag.startswith("B-"):
            yield tag[2:]
        elif tag != "O" and not tag.startswith("I-"):
            yield tag
