"""Class labels in a column: one name, several names, or a number; and how they are written."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.data.rows import Row, parse_json_cell

Label = str | float | tuple[str, ...]  # one class, a number, or several classes

SCORES = ("score", "similarity", "relatedness_score")  # column names whose values are numbers
JOINED = "|"
SEPARATORS = ("|", ";", ",")  # in this order: a comma is the one most likely to be part of a name
YES = ("1", "1.0", "true", "yes", "y", "x")
NO = ("0", "0.0", "false", "no", "n", "")
LONGEST_PART = 60  # characters of a label name that could be one of several


@dataclass(frozen=True)
class LabelStyle:
    """How the labels of a file are written.

    kind: single, class (single, separators are part of the name), multi or number.
    separator: between the names of a multi-label cell.
    one_hot: columns that each stand for one label, with 1 where it applies.
    listed: every row has a list of exactly one name, as doccano writes single labels.
    """

    kind: str = "single"
    separator: str = JOINED
    one_hot: tuple[str, ...] = ()
    listed: bool = False


SINGLE = LabelStyle()


def parse_label(row: Row, column: str, style: LabelStyle) -> Label | None:
    """The label of a row: a name, a number or several names; None where there is none."""
    if style.one_hot:
        return _one_hot(row, style)
    value = row.value(column)
    if style.kind == "multi":
        return _several_names(row, column, value, style.separator)
    if value is None or value == "":
        return None
    if style.kind == "number":
        return _number(row, column, value)
    if style.listed:
        value = _only(value)
    if isinstance(value, list | dict):
        fix = "Read with labels=multi (--labels multi)." if class_names(value) is not None else _NOT_A_NAME
        raise row.place.value_error(
            value, column=column, expected="one label, as in the rows before", fix=fix, kind="bad-label"
        )
    if style.kind == "single" and isinstance(value, str) and JOINED in value:
        fix = "If these are several, read with labels=multi; if it is one name, with labels=class."
        raise row.place.value_error(
            value, column=column, expected="one label, as in the rows before", fix=fix, kind="bad-label"
        )
    return _name(value)


_NOT_A_NAME = "A list or an object is not a class name. Name the column of the classes: --columns label=NAME."


def _one_hot(row: Row, style: LabelStyle) -> Label:
    names = []
    for column in style.one_hot:
        value = row.value(column)
        written = "" if value is None else str(value).strip().lower()
        if written in YES:
            names.append(column)
        elif written not in NO:
            raise row.place.value_error(
                value, column=column, expected="1 or 0, as in a one-hot column", kind="bad-label"
            )
    if style.kind == "multi":
        return tuple(names)
    if len(names) != 1:
        parsed = ", ".join(names) or "none"
        fix = "Read with labels=multi (--labels multi)."
        message = f"{len(names)} of the label columns are 1 ({parsed:.80})"
        raise row.place.error(message, expected="one", fix=fix, kind="bad-label")
    return names[0]


def _several_names(row: Row, column: str, value: Any, separator: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    parsed = parse_json_cell(value)
    if isinstance(parsed, list | dict):
        names = class_names(parsed)
        if names is None:
            expected = 'a list of names, such as ["billing", "login"]'
            raise row.place.value_error(parsed, column=column, expected=expected, fix=_NOT_A_NAME, kind="bad-label")
        return names
    parts = (part.strip() for part in _name(parsed).split(separator))
    return tuple(part for part in parts if part)


def class_names(value: list[Any] | dict[str, Any]) -> tuple[str, ...] | None:
    """The names in a list of names, in Label Studio's {"choices": [...]} or in spaCy's {"name": 1.0}; else None."""
    if isinstance(value, dict):
        if isinstance(value.get("choices"), list):
            return class_names(value["choices"])
        if all(_is_share(share) for share in value.values()):
            return tuple(name for name, share in value.items() if share >= 0.5)
        return None
    if all(isinstance(one, str | int | float) for one in value):
        return tuple(_name(one) for one in value)
    return None


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _only(value: Any) -> Any:
    """The name in a list of one."""
    parsed = parse_json_cell(value)
    names = class_names(parsed) if isinstance(parsed, list | dict) else None
    return names[0] if names is not None and len(names) == 1 else value


def _name(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(row: Row, column: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, bool):
        fix = "If the labels are classes, read with labels=single."
        raise row.place.value_error(value, column=column, expected="a number", fix=fix, kind="bad-label")
    return number


def infer_label_style(
    values: Sequence[Any], column: str, *, kind: str | None = None, separator: str | None = None
) -> LabelStyle:
    """How these labels are written; `kind` and `separator` are given by the user or by another file."""
    present = [value for value in values if value is not None and value != ""]
    listed = bool(present) and all(_only(value) is not value for value in present)
    kind = kind or ("single" if listed and len(present) > 1 else infer_label_kind(present, column))
    if kind != "multi":
        return LabelStyle(kind, listed=listed)
    return LabelStyle("multi", separator or infer_separator(present) or JOINED)


def infer_label_kind(values: Sequence[Any], column: str) -> str:
    """multi: lists, or joined by |; number: nearly all are, some with decimals or the column a score; else single."""
    if any(_is_several(value) for value in values):
        return "multi"
    numbers = [number for number in map(to_number, values) if number is not None]
    if not numbers or len(numbers) < 0.9 * len(values):
        return "single"
    decimals = any(not number.is_integer() for number in numbers)
    return "number" if decimals or column.strip().lower() in SCORES else "single"


def _is_several(value: Any) -> bool:
    if isinstance(value, str) and value[:1] not in ("[", "{"):
        return JOINED in value and all(value.split(JOINED))
    return isinstance(parse_json_cell(value), list | dict)


def to_number(value: Any) -> float | None:
    """A value as a number; None where it is none."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def infer_separator(values: Sequence[Any]) -> str | None:
    """What separates the names in these cells: the first of |, ; and the comma that occurs."""
    cells = [value for value in values if isinstance(value, str) and value[:1] not in ("[", "{")]
    return next((separator for separator in SEPARATORS if any(separator in cell for cell in cells)), None)


class JoinedLabels(NamedTuple):
    """Labels that look like several names in one cell."""

    separator: str
    labels: int
    parts: int
    example: str

    @property
    def message(self) -> str:
        return (
            f"the {self.labels} labels look like combinations of {self.parts} names separated by "
            f'"{self.separator}", such as "{self.example:.60}"'
        )


def joined_labels(labels: Collection[str]) -> JoinedLabels | None:
    """Whether many distinct labels are made of few names that repeat; None where they are not."""
    for separator in SEPARATORS:
        several = [label for label in labels if separator in label]
        counts: dict[str, int] = {}
        for label in labels:
            for part in {part.strip() for part in label.split(separator)}:
                counts[part] = counts.get(part, 0) + 1
        repeating = sum(count > 1 for count in counts.values())
        short = all(len(part) <= LONGEST_PART for part in counts)
        if len(several) >= 2 and short and len(counts) < len(labels) and repeating >= 0.75 * len(counts):
            return JoinedLabels(separator, len(labels), len(counts), min(several))
    return None
