"""Records without labels: documents, and pairs of a correct and an incorrect sentence."""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.records.labeled import TEXT
from regard.data.records.record import ColumnMap, Record, Role
from regard.data.rows import Row


@dataclass(frozen=True, slots=True)
class DocumentRecord(Record):
    """Plain text. `continues`: the document is very long, and the next record is its next part."""

    type_name = "text"
    tasks = ("masked", "causal", "bidirectional")
    roles = (TEXT,)
    required = (("text",),)
    text_fields = ("text",)

    text: str
    continues: bool = False

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> DocumentRecord:
        continues = row.values.get("continues") is True
        return cls(row.text(columns["text"]), continues, group=columns.group(row), place=row.place)


@dataclass(frozen=True, slots=True)
class MinimalRecord(Record):
    """A minimal pair: a correct sentence, an incorrect one, and the name of the phenomenon if there is one (BLiMP)."""

    type_name = "minimal"
    roles = (Role("good", ("sentence_good",)), Role("bad", ("sentence_bad",)), Role("kind", ("uid",)))
    required = (("good", "bad"),)
    optional = ("kind",)
    text_fields = ("good", "bad")

    good: str
    bad: str
    kind: str | None = None

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> MinimalRecord:
        good = row.text(columns["good"])
        bad = row.text(columns["bad"])
        for role, text in (("good", good), ("bad", bad)):
            if not text.strip():
                raise row.place.error("there is no sentence here", column=columns[role], expected="a text")
        if good == bad:
            raise row.place.error("the two sentences are the same", fix="Remove the row: there is nothing to compare.")
        kind = row.values.get(columns.get("kind", ""))
        return cls(good, bad, None if kind is None else str(kind), group=columns.group(row), place=row.place)

    @property
    def annotation(self) -> str:
        return repr(self.kind)
