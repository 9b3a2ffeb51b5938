"""Models with labels of other names than the data or another model: mapped by name, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.errors import InputError, shorten
from regard.tasks.classify import LabelAnswer, LabelsAnswer
from regard.tasks.task import Answer

SHOWN = 10  # labels in a message


def label_mapping(labels: Sequence[str], expected: Sequence[str], *, model: str, where: str) -> dict[str, str] | None:
    """The expected name of each label of a model, compared without regard to case; None if all names are equal.

    where: what has the expected labels, in words. Raises InputError with the labels that differ.
    """
    if set(labels) == set(expected):
        return None
    folded = {label.casefold(): label for label in expected}
    mapping = {label: folded[label.casefold()] for label in labels if label.casefold() in folded}
    if len(folded) == len(expected) and len(set(mapping.values())) == len(labels) == len(expected):
        return mapping
    ours = [label for label in labels if label.casefold() not in folded]
    own = {label.casefold() for label in labels}
    theirs = [label for label in expected if label.casefold() not in own]
    raise InputError(
        f"{model} and {where} have different labels, so their answers cannot be compared. "
        f"Only in {model}: {_listed(ours)}. Only in {where}: {_listed(theirs)}. "
        "Rename the labels in one of them, or train a model on these labels."
    )


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(f'"{shorten(label, 40)}"' for label in labels[:SHOWN])
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return f"{shown}{more}" if shown else "none"


def renamed(answer: Answer, mapping: Mapping[str, str] | None) -> Answer:
    """An answer with the expected names of its labels."""
    if mapping is None:
        return answer
    if isinstance(answer, LabelAnswer):
        return replace(answer, label=mapping[answer.label], scores=_renamed_scores(answer.scores, mapping))
    if isinstance(answer, LabelsAnswer):
        labels = tuple(mapping[label] for label in answer.labels)
        return replace(answer, labels=labels, scores=_renamed_scores(answer.scores, mapping))
    return answer


def _renamed_scores(scores: Mapping[str, Any] | None, mapping: Mapping[str, str]) -> dict[str, Any] | None:
    return None if scores is None else {mapping[name]: score for name, score in scores.items()}
