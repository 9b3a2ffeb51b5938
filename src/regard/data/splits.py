"""Records divided into train, valid and test.

What belongs together stays on one side: records of one group (an article, a patient, a user), and records that say the
same thing twice. Every part gets its share of every label. The same seed gives the same parts.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence

from regard.data.records import (
    AnswerRecord,
    ClassifyRecord,
    MinimalRecord,
    PairRecord,
    Record,
    TagRecord,
    TranslateRecord,
)
from regard.errors import InputError, pluralize

Key = Callable[[Record], Hashable]
PARTS = {"train": 0.9, "valid": 0.1}
BINS = 10  # for labels that are numbers


def split_records(
    records: Sequence[Record],
    parts: Mapping[str, float] = PARTS,
    *,
    seed: int = 0,
    stratify: bool | Key = True,
    group: Key | None = None,
) -> dict[str, list[int]]:
    """The numbers of the records of each part, in order; every record is in exactly one.

    parts: the share of each, adding up to 1.
    stratify: by label (the kinds of entities, whether there is an answer), by a key of your own, or not at all.
    group: what stays on one side; `record.group` unless told. Equal records always do.
    """
    _check(records, parts)
    bundles = group_records(records, group)
    strata = _strata(records, stratify)
    order = list(range(len(bundles)))
    random.Random(seed).shuffle(order)
    # Largest first, so that the small ones can even out; then label by label. Sorting keeps the shuffled order.
    order.sort(key=lambda place: -len(bundles[place]))
    order.sort(key=lambda place: strata[bundles[place][0]])
    found = _deal([bundles[place] for place in order], parts)
    empty = [name for name, rows in found.items() if not rows]
    if empty:
        raise InputError(
            f"{pluralize(len(records), 'record')} in {pluralize(len(bundles), 'group')} leave none for "
            f'"{empty[0]}", {parts[empty[0]]:g} of all: '
            "what belongs together, as questions about one article do, stays on one side. Give it a larger share, or "
            "records of more groups."
        )
    return found


def group_records(records: Sequence[Record], group: Key | None = None) -> list[list[int]]:
    """Records that must not be parted: of one group or equal in what they say, however many steps apart."""
    leader = list(range(len(records)))

    def root(row: int) -> int:
        while leader[row] != row:
            leader[row] = leader[leader[row]]
            row = leader[row]
        return row

    first: dict[Hashable, int] = {}
    for row, record in enumerate(records):
        named = record.group if group is None else group(record)
        for key in (("says", content_key(record)), ("group", named)):
            if key != ("group", None):
                one, other = sorted((root(first.setdefault(key, row)), root(row)))
                leader[other] = one
    found: dict[int, list[int]] = {}
    for row in range(len(records)):
        found.setdefault(root(row), []).append(row)
    return list(found.values())


def content_key(record: Record) -> Hashable:
    """What a record says, whatever its label: two records that say the same are duplicates."""
    match record:
        case PairRecord():
            return record.first.strip(), record.second.strip()
        case AnswerRecord():
            return record.context.strip(), record.question.strip()
        case TranslateRecord():
            return record.source.strip()
        case MinimalRecord():
            return record.good.strip(), record.bad.strip()
        case _:
            return record.text.strip()


def _strata(records: Sequence[Record], stratify: bool | Key) -> list[str]:
    """The stratum of each record, as text, so that the order of strata is the same in every run."""
    if stratify is False:
        return [""] * len(records)
    if stratify is not True:
        return [repr(stratify(record)) for record in records]
    numbers = sorted(label for label in map(_number, records) if label is not None)
    edges = [numbers[len(numbers) * place // BINS] for place in range(1, BINS)] if numbers else []
    return [_stratum(record, edges) for record in records]


def _stratum(record: Record, edges: Sequence[float]) -> str:
    match record:
        case ClassifyRecord() | PairRecord():
            if isinstance(record.label, float):
                return f"{bisect_right(edges, record.label):02d}"
            return repr(sorted(record.label)) if isinstance(record.label, tuple) else repr(record.label)
        case TagRecord():
            return repr(sorted({entity.label for entity in record.entities}))
        case AnswerRecord():
            return repr(record.answerable)
        case _:
            return ""


def _number(record: Record) -> float | None:
    label = record.label if isinstance(record, ClassifyRecord | PairRecord) else None
    return label if isinstance(label, float) else None


def _deal(bundles: Sequence[Sequence[int]], parts: Mapping[str, float]) -> dict[str, list[int]]:
    """Each bundle to the part that is furthest behind its share. As bundles come label by label, every run of them is
    divided in the same shares, and what rounding leaves over in one label is made good in the next."""
    found: dict[str, list[int]] = {name: [] for name in parts}
    dealt = 0
    for rows in bundles:
        dealt += len(rows)
        behind = max(parts, key=lambda name: parts[name] * dealt - len(found[name]))
        found[behind].extend(rows)
    return {name: sorted(rows) for name, rows in found.items()}


def _check(records: Sequence[Record], parts: Mapping[str, float]) -> None:
    if not records:
        raise InputError("no record was given to divide; expected at least one a part.")
    if not parts or any(not 0 < share <= 1 for share in parts.values()):
        raise InputError(
            f"the parts are {dict(parts)}; expected a share above 0 for each, such as train=0.9, valid=0.1."
        )
    if not math.isclose(sum(parts.values()), 1, abs_tol=1e-6):
        raise InputError(f"the shares of {', '.join(parts)} add up to {sum(parts.values()):g}; expected 1.")
