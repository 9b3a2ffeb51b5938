"""Split records into train, valid and test.

Records of one group (an article, a patient, a user) and duplicates stay on one side. Every part gets its fraction of
every label; the only record of a label can be kept for training. The same seed gives the same parts.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence

from regard.data.records import ClassifyRecord, PairRecord, Record, TagRecord
from regard.errors import InputError, pluralize

Key = Callable[[Record], Hashable]
PARTS = {"train": 0.9, "valid": 0.1}
MANY_DOCUMENTS = 30  # from which sentences are divided by document; neighboring sentences are alike
BINS = 10  # strata of labels that are numbers


def split_records(
    records: Sequence[Record],
    parts: Mapping[str, float] = PARTS,
    *,
    seed: int = 0,
    stratify: bool | Key = True,
    group: Key | None = None,
    rare_labels: str | None = None,
) -> dict[str, list[int]]:
    """The indices of the records of each part, in order; every record is in exactly one part.

    parts: the fraction of each part; they add up to 1.
    stratify: by `record.stratum` (the label, the kinds of entities, whether there is an answer), by a key function, or
        not at all.
    group: key of the records that stay on one side; if not given, `record.group`, and for sentences of many documents
        their document. Duplicates stay together, unless documents do.
    rare_labels: the part that gets the records of a label which all stay on one side, as a single one does; by chance
        if None, and if another part would be empty.
    """
    _check(records, parts, rare_labels)
    groups = (_documents(records) if group is None else None) or group_records(records, group)
    strata = _strata(records, stratify)
    order = list(range(len(groups)))
    random.Random(seed).shuffle(order)
    # Largest first, so that small groups can even out the parts; then by stratum. Sorting is stable, so the shuffled
    # order remains within equal keys.
    order.sort(key=lambda number: -len(groups[number]))
    order.sort(key=lambda number: strata[groups[number][0]])
    ordered = [groups[number] for number in order]
    chosen = {} if rare_labels is None else dict.fromkeys(_groups_of_rare_labels(records, ordered), rare_labels)
    split = _distribute(ordered, parts, chosen)
    if chosen and not all(split.values()):
        split = _distribute(ordered, parts, {})
    empty = [name for name, rows in split.items() if not rows]
    if empty:
        raise InputError(
            f"{pluralize(len(records), 'record')} in {pluralize(len(groups), 'group')} leave none for "
            f'"{empty[0]}", {parts[empty[0]]:g} of all: '
            "records that belong together, such as questions about one article, stay on one side. Use a larger "
            "fraction, or records of more groups."
        )
    return split


def group_records(records: Sequence[Record], group: Key | None = None) -> list[list[int]]:
    """Records that must stay together: of one group or with equal input texts, also through other records.

    Union-find: each record points to an earlier one of its set, and the root of a set is its first record.
    """
    parent = list(range(len(records)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first_with_texts: dict[Hashable, int] = {}
    first_of_group: dict[Hashable, int] = {}
    for row, record in enumerate(records):
        key = record.group if group is None else group(record)
        first = first_with_texts.setdefault(record.input_texts, row)
        others = (first,) if key is None else (first, first_of_group.setdefault(key, row))
        for other in others:
            if other != row:
                low, high = sorted((root(other), root(row)))
                parent[high] = low
    groups: dict[int, list[int]] = {}
    for row in range(len(records)):
        groups.setdefault(root(row), []).append(row)
    return list(groups.values())


def _documents(records: Sequence[Record]) -> list[list[int]] | None:
    """The sentences of each document; None unless there are many documents and nothing else to group by.

    Equal sentences do not tie documents together: short ones, such as a place and a date, stand in many of them.
    """
    documents: dict[Hashable, list[int]] = {}
    for row, record in enumerate(records):
        if not isinstance(record, TagRecord) or record.document is None or record.group is not None:
            return None
        documents.setdefault((record.place.file, record.document), []).append(row)
    return list(documents.values()) if len(documents) >= MANY_DOCUMENTS else None


def _strata(records: Sequence[Record], stratify: bool | Key) -> list[str]:
    """The stratum of each record as text, so that the order of strata is the same in every run."""
    if stratify is False:
        return [""] * len(records)
    if stratify is not True:
        return [repr(stratify(record)) for record in records]
    strata = [record.stratum for record in records]
    numbers = sorted(stratum for stratum in strata if isinstance(stratum, float))
    edges = [numbers[len(numbers) * number // BINS] for number in range(1, BINS)] if numbers else []
    return [f"{bisect_right(edges, one):02d}" if isinstance(one, float) else one for one in strata]


def _groups_of_rare_labels(records: Sequence[Record], groups: Sequence[Sequence[int]]) -> list[int]:
    """The numbers of the groups that have a label which no other group has."""
    group_of: dict[str, int] = {}  # the first group that has the label
    frequent = set()  # labels of several groups
    for number, rows in enumerate(groups):
        for row in rows:
            record = records[row]
            if (
                isinstance(record, ClassifyRecord | PairRecord)
                and isinstance(record.label, str)
                and group_of.setdefault(record.label, number) != number
            ):
                frequent.add(record.label)
    return [number for label, number in group_of.items() if label not in frequent]


def _distribute(
    groups: Sequence[Sequence[int]], parts: Mapping[str, float], chosen: Mapping[int, str]
) -> dict[str, list[int]]:
    """Add each group to the part that is chosen for its number, the others to the part furthest below its fraction.

    As groups are ordered by stratum, every stratum is divided in the same fractions, and rounding errors of one stratum
    are corrected in the next.
    """
    names = list(parts)
    split: dict[str, list[int]] = {name: [] for name in names}
    distributed = 0
    for number, rows in enumerate(groups):
        distributed += len(rows)
        if number in chosen:
            split[chosen[number]].extend(rows)
            continue
        missing = [fraction * distributed - len(split[name]) for name, fraction in parts.items()]
        split[names[missing.index(max(missing))]].extend(rows)
    return {name: sorted(rows) for name, rows in split.items()}


def _check(records: Sequence[Record], parts: Mapping[str, float], rare_labels: str | None) -> None:
    if not records:
        raise InputError("there is no record to split; expected at least one per part.")
    if not parts or any(not 0 < fraction <= 1 for fraction in parts.values()):
        raise InputError(f"the parts are {dict(parts)}; expected fractions above 0, such as train=0.9, valid=0.1.")
    if not math.isclose(sum(parts.values()), 1, abs_tol=1e-6):
        raise InputError(f"the fractions of {', '.join(parts)} add up to {sum(parts.values()):g}; expected 1.")
    if rare_labels is not None and rare_labels not in parts:
        raise InputError(f'rare_labels is "{rare_labels}", expected the name of a part: {", ".join(parts)}.')
