"""Suggestions of other options for reading or training, shown by `regard check` and `regard train`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from regard.data.labels import joined_labels
from regard.data.schema.schema import Schema


class Hint(NamedTuple):
    """An observation and the option to try. `kind` is that of the finding."""

    kind: str
    message: str
    fix: str


def reading_hints(schema: Schema, labels: Collection[str], *, task: str | None, kind: str | None) -> list[Hint]:
    """Hints about data with these distinct class labels. `task` and `kind` are the options given by the user."""
    suggestions = []
    if task is None and schema.task == "pair" and schema.labels == "number":
        suggestions.append(Hint("similarity", SIMILARITY, EMBED))
    if kind is None and schema.labels == "single" and (joined := joined_labels(labels)) is not None:
        fix = "Use --labels multi if a text can have several labels, --labels class if each is one name."
        suggestions.append(Hint("joined-labels", joined.message, fix))
    column = schema.columns.get("label", "")
    if kind is None and schema.labels == "single" and _are_ratings(column, labels):
        numbers = sorted(labels, key=int)
        message = (
            f'the {len(labels)} whole numbers from {numbers[0]} to {numbers[-1]} in "{column}" are read as classes'
        )
        suggestions.append(Hint("ratings", message, RATING))
    return suggestions


def _are_ratings(column: str, labels: Collection[str]) -> bool:
    """Whether labels are whole numbers of a column whose name says that they are ratings."""
    return column.strip().lower() in RATING_COLUMNS and len(labels) > 2 and all(map(WHOLE.fullmatch, labels))


RATING_COLUMNS = ("stars", "rating", "ratings", "score", "grade")
WHOLE = re.compile(r"[+-]?[0-9]{1,4}")
RATING = "With --labels number, the model predicts a number, and an answer that is nearly right counts as better."
SIMILARITY = "the labels of these pairs are numbers"
EMBED = (
    "If they say how similar the texts are, --task embed usually scores better with few rows: the vectors of the "
    "pretrained model are comparable already, while a pair model first has to learn to compare two texts."
)
