"""Records with a label: one text, or a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from regard.data.labels import SCORES, Label
from regard.data.records.record import ColumnMap, Record, Role
from regard.data.rows import Row

TEXT = Role(
    "text",
    ("text", "sentence", "review", "content", "document", "body", "comment", "tweet", "message", "utterance"),
)
LABEL = Role(
    "label",
    (
        *("label", "labels", "gold_label", "class", "category", "sentiment", "intent", "topic", "stars", "rating"),
        *(*SCORES, "quality", "is_duplicate", "target"),
    ),
)


def label_stratum(label: Label | None) -> str | float:
    """The label of a record as its stratum; a number stays a number, as it is divided into bins."""
    if isinstance(label, float):
        return label
    return repr(sorted(label)) if isinstance(label, tuple) else repr(label)


@dataclass(frozen=True, slots=True)
class ClassifyRecord(Record):
    """A text and its class, its number or its classes; None if it has no label."""

    type_name = "classify"
    roles = (TEXT, LABEL)
    required = (("text", "label"),)
    required_unlabeled = (("text",),)
    text_fields = ("text",)

    text: str
    label: Label | None = None

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> ClassifyRecord:
        return cls(row.text(columns["text"]), columns.label(row), group=columns.group(row), place=row.place)

    @property
    def annotation(self) -> str:
        return repr(self.label)

    @property
    def stratum(self) -> str | float:
        return label_stratum(self.label)


@dataclass(frozen=True, slots=True)
class PairRecord(Record):
    """Two texts and the label of the pair, such as entailment or a similarity score."""

    type_name = "pair"
    tasks = ("embed",)
    roles = (
        Role("first", ("sentence1", "premise", "text1", "question1", "sentence_a", "text_a", "first", "#1 string")),
        Role(
            "second", ("sentence2", "hypothesis", "text2", "question2", "sentence_b", "text_b", "second", "#2 string")
        ),
        LABEL,
    )
    required = (("first", "second"),)
    optional = ("label",)
    text_fields = ("first", "second")

    first: str
    second: str
    label: Label | None = None

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> PairRecord:
        first = row.text(columns["first"])
        second = row.text(columns["second"])
        return cls(first, second, columns.label(row), group=columns.group(row), place=row.place)

    @classmethod
    def infer_roles(
        cls, columns: Mapping[str, str], roles: Mapping[str, str], named: Mapping[str, str]
    ) -> dict[str, str]:
        """A question and a sentence without a context, as in QNLI."""
        names = {name: columns[name] for name in ("question", "sentence") if name in columns}
        if len(names) < 2 or "context" in roles or set(names.values()) & set(named.values()):
            return {}
        return {"first": names["question"], "second": names["sentence"]}

    @property
    def annotation(self) -> str:
        return repr(self.label)

    @property
    def stratum(self) -> str | float:
        return label_stratum(self.label)
