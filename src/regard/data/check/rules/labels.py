"""Checks of labels: how many of each, which look alike, which are missing, and what dev has that train has not."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator

import numpy as np

from regard.data.check.collect import FindingCollector, quoted
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.check.rules.similar_names import plain, similar_names
from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, Place, TagRecord

MOST = 20_000  # names that are told apart; with more than that they are no labels
NONE = {"", "na", "nan", "none", "null", "unknown", "tbd", "undefined", "missing", "nil"}
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


class LabelRule:
    """Counts of each label in each split, and where each was seen first."""

    def __init__(self, gather: FindingCollector) -> None:
        self.gather = gather
        self.counts: dict[str, Counter[str]] = {}
        self.first: dict[tuple[str, str], Place] = {}
        self.missing: dict[str, tuple[Place, int]] = {}
        self.labelled: Counter[str] = Counter()
        self.numbers, self.number_rows = array("d"), list[Place]()
        self.tagged = False

    def check_row(self, row: CheckedRow) -> None:
        record, split = row.record, row.split
        counts = self.counts.get(split)
        if counts is None:
            counts = self.counts[split] = Counter()
        names: tuple[str, ...] | None
        if isinstance(record, ClassifyRecord | PairRecord):
            names = self._names(row, record.label)
        elif isinstance(record, TagRecord):
            self.tagged = True
            names = None if record.tags is None else tuple(_kinds(record.tags))
        elif isinstance(record, AnswerRecord):
            names = None if record.answers is None else ()
        else:
            return
        if names is None:
            place, count = self.missing.get(split, (row.place, 0))
            self.missing[split] = (place, count + 1)
            return
        self.labelled[split] += 1
        for name in names:
            if name not in counts:
                if len(counts) >= MOST:
                    continue
                self.first[split, name] = row.place
            counts[name] += 1

    def _names(self, row: CheckedRow, label: object) -> tuple[str, ...] | None:
        if label is None:
            return None
        if isinstance(label, float):
            self.numbers.append(label)
            if len(self.number_rows) < 1_000_000:
                self.number_rows.append(row.place)
            return ()
        if isinstance(label, tuple):
            if len(set(label)) < len(label):
                twice = next(name for name in label if label.count(name) > 1)
                self.gather.add("repeated-label", row.place, f'"{twice}" is there twice', split=row.split)
            return tuple(dict.fromkeys(label))
        return (str(label),)

    @property
    def total(self) -> dict[str, int]:
        """Rows of each label over all splits, the most frequent first."""
        found: Counter[str] = Counter()
        for counts in self.counts.values():
            found.update(counts)
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    @property
    def spread(self) -> dict[str, float]:
        if not self.numbers:
            return {}
        values = np.frombuffer(self.numbers)
        return {"low": float(values.min()), "mean": float(values.mean()), "high": float(values.max())}

    def finish(self) -> None:
        for split, (place, count) in self.missing.items():
            if self.labelled[split]:
                what = f"the row has no label, but {self.labelled[split]:,} others have"
                self.gather.add("missing-label", place, what, split=split, count=count)
        train = next(iter(self.counts), "")
        for split, counts in self.counts.items():
            if len(counts) >= MOST or len(counts) > max(20, 0.5 * self.labelled[split]):
                first = min((self.first[split, name] for name in counts), key=lambda place: place.line or 0)
                what = f"{len(counts):,} labels in {self.labelled[split]:,} rows"
                self.gather.add("many-labels", first, what, split=split)
                continue
            if split == train:
                self._alone(split, counts)
                self._odd(split, counts)
                self._uneven(split, self._meant(counts))
            else:
                self._against(train, split)
            self._alike(split, counts)
        self._outliers()

    def _alone(self, split: str, counts: Counter[str]) -> None:
        rows = self.labelled[split]
        if self.tagged:
            if not counts and rows > 1:
                place = Place("the data")
                self.gather.add("no-entities", place, f"none of {rows:,} sentences has an entity", split=split)
            return
        values = np.frombuffer(self.numbers) if self.numbers else np.zeros(0)
        same = len(counts) == 1 and next(iter(counts.values())) == rows
        if rows > 1 and (same or (len(values) == rows and values.min() == values.max())):
            name = next(iter(counts), f"{values[0]:g}" if len(values) else "")
            place = self.first.get((split, name)) or self.number_rows[0]
            self.gather.add("one-label", place, f'all {rows:,} rows have the label "{name}"', split=split)

    def _odd(self, split: str, counts: Counter[str]) -> None:
        """Placeholders, and words among numbers."""
        figures = [name for name in counts if NUMBER.fullmatch(name)]
        for name, count in counts.items():
            empty = plain(name) in NONE and (not plain(name) or count < 0.5 * self.labelled[split])
            stranger = len(figures) >= 2 and name not in figures and count * 10 <= sum(counts[one] for one in figures)
            if empty or stranger:
                why = "stands for no label" if empty else f"is no number as {quoted(sorted(figures)[:3])} are"
                place = self.first[split, name]
                self.gather.add("odd-label", place, f'the label "{name}" {why}', split=split, key=name, count=count)

    def _meant(self, counts: Counter[str]) -> Counter[str]:
        """Without those that are slips of others: they are said to be that, and need not be rare besides."""
        slips = {rare for rare, _, _ in similar_names(counts)}
        return Counter({name: count for name, count in counts.items() if name not in slips})

    def _uneven(self, split: str, counts: Counter[str]) -> None:
        if len(counts) < 2:
            return
        (most, top), *_, (least, low) = counts.most_common()
        if self.tagged:
            return
        if top >= 10 * low and top >= 20:
            what = f'"{most}" has {top:,} rows, "{least}" only {low:,}: {top / low:,.0f} times as many'
            severity = "warning" if top >= 20 * low else "note"
            self.gather.add("imbalance", self.first[split, least], what, split=split, severity=severity)
        fair = self.labelled[split] / len(counts)
        for name, count in counts.items():
            if count <= 2 and fair >= 20:
                what = f'the label "{name}" has {count} row{"s" if count > 1 else ""} of {self.labelled[split]:,}'
                self.gather.add("rare-label", self.first[split, name], what, split=split, key=name, count=count)

    def _against(self, train: str, split: str) -> None:
        known, own = self.counts[train], self.counts[split]
        if not known or not own:
            return
        for name in own:
            if name not in known:
                what = f'the label "{name}" is in {split}, but in no row of {train}'
                place = self.first[split, name]
                self.gather.add("unknown-label", place, what, split=split, key=f"{split} {name}", count=own[name])
        absent = [name for name in self._meant(known) if name not in own]
        if absent and len(own) > 1:
            what = f"{split} has no row with {quoted(absent)}"
            self.gather.add("unseen-label", next(iter(_places(self.first, split))), what, split=split, key=split)

    def _alike(self, split: str, counts: Counter[str]) -> None:
        for rare, frequent, why in similar_names(counts):
            what = f'the label "{rare}" ({counts[rare]:,}) {why} "{frequent}" ({counts[frequent]:,})'
            fix = f'Write "{frequent}".'
            place = self.first[split, rare]
            key = f"{split} {rare}"
            self.gather.add("near-label", place, what, split=split, key=key, fix=fix, count=counts[rare])

    def _outliers(self) -> None:
        if len(self.numbers) < 10:
            return
        values = np.frombuffer(self.numbers)
        low, middle, high = np.percentile(values, (10, 50, 90))
        reach = 5 * max(float(high - low), 1e-9)
        for place in np.flatnonzero(np.abs(values - middle) > reach)[:1000]:
            if place < len(self.number_rows) and high > low:
                what = f"the label is {values[place]:g}, but nearly all are from {low:g} to {high:g}"
                self.gather.add("label-outlier", self.number_rows[place], what)


def _kinds(tags: tuple[str, ...]) -> Iterator[str]:
    """The name of each entity, or every tag where they are no entities."""
    for tag in tags:
        if tag.startswith("B-"):
            yield tag[2:]
        elif tag != "O" and not tag.startswith("I-"):
            yield tag


def _places(first: dict[tuple[str, str], Place], split: str) -> Iterator[Place]:
    return (place for (own, _), place in first.items() if own == split)
