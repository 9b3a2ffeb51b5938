"""Records of words with tags: named entities, parts of speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.data.records.labeled import TEXT
from regard.data.records.record import ColumnMap, Record, Role
from regard.data.rows import NOWHERE, Place, Row, parse_json_cell
from regard.data.spans import Entity, parse_span
from regard.data.tags import TagError, entities, to_iob2
from regard.errors import pluralize
from regard.text.word_spans import word_spans


@dataclass(frozen=True, slots=True)
class TagRecord(Record):
    """A text split into words with a tag for each word, in IOB2 for entities. `tags` is None if it has no tags.

    left_context, right_context: texts of the sentences around it in its document, in order, nearest last and first
        (see `regard.data.records.neighbors`).
    """

    type_name = "tag"
    roles = (
        Role("tokens", ("tokens", "words")),
        Role("tags", ("tags", "ner_tags", "labels", "ner", "pos_tags")),
        Role("entities", ("entities", "spans")),
        Role("document", ("document_id", "doc_id", "docid")),
        TEXT,
    )
    required = (("tokens", "tags"), ("text", "entities"))
    required_unlabeled = (("tokens",), ("text", "document"))
    optional = ("document",)
    text_fields = ("text",)

    text: str
    spans: tuple[tuple[int, int], ...]  # start and end of each word
    tags: tuple[str, ...] | None
    document: str | None = None
    left_context: tuple[str, ...] = field(default=(), compare=False, repr=False)
    right_context: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> TagRecord:
        if "entities" in columns:
            return cls._from_entity_row(row, columns)
        document = _document(row, columns)
        if "tokens" not in columns:
            text = row.text(columns["text"])
            return cls.from_text(text, document=document, group=columns.group(row), place=row.place)
        tokens = columns["tokens"]
        column = columns.get("tags")
        tags = None if column is None or row.values.get(column) is None else row.strings(column, kind="broken-tags")
        return cls.from_tokens(
            row.strings(tokens),
            tags,
            scheme=columns.tag_scheme,
            document=document,
            group=columns.group(row),
            place=row.place,
            lines=row.values.get("line") if tokens.isdigit() else None,
        )

    @classmethod
    def _from_entity_row(cls, row: Row, columns: ColumnMap) -> TagRecord:
        column = columns["entities"]
        spans = parse_json_cell(row.value(column))
        if not isinstance(spans, list):
            expected = 'a list such as [{"start": 0, "end": 5, "label": "PER"}]'
            raise row.place.value_error(spans, column=column, expected=expected, kind="bad-entity")
        text = row.text(columns["text"])
        entities = [parse_span(row, span, f"{column}[{number}]", text) for number, span in enumerate(spans)]
        document = _document(row, columns)
        return cls.from_entities(text, entities, document=document, group=columns.group(row), place=row.place)

    @property
    def annotation(self) -> str:
        return " ".join(self.tags or ())

    @property
    def stratum(self) -> str | float:
        return repr(sorted({entity.label for entity in self.entities}))

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.spans)

    @property
    def values(self) -> list[Any]:
        """The text and its tags; not the document, whose number depends on the file."""
        return [self.text, self.spans, self.tags, self.group]

    @property
    def entities(self) -> tuple[Entity, ...]:
        """The entities with their character offsets."""
        words = entities(self.tags or ())
        return tuple(Entity(self.spans[first][0], self.spans[last - 1][1], label) for first, last, label in words)

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[str],
        tags: Sequence[str] | None,
        *,
        scheme: str = "iob2",
        document: str | None = None,
        group: str | None = None,
        place: Place = NOWHERE,
        lines: Sequence[int] | None = None,
    ) -> TagRecord:
        """From words and their tags. The text is the words joined by spaces; `lines` are their line numbers."""
        if tags is not None and len(tokens) != len(tags):
            raise place.error(
                f"{pluralize(len(tokens), 'token')} but {pluralize(len(tags), 'tag')}",
                column="tags",
                expected="one tag per token",
                kind="tag-count",
            )
        spans = []
        start = 0
        for number, token in enumerate(tokens):
            if not token:
                raise place.error(f"token {number} is empty", column="tokens", fix="Remove it and its tag.")
            spans.append((start, start + len(token)))
            start += len(token) + 1
        try:
            iob2 = None if tags is None else to_iob2(tags, scheme)
        except TagError as error:
            location = place if lines is None else place._replace(line=lines[error.word])
            message = f'token {error.word} "{tokens[error.word]}": {error.message}'
            raise location.error(
                message, column="tags", expected=error.expected, fix=error.fix, kind="broken-tags"
            ) from error
        return cls(" ".join(tokens), tuple(spans), iob2, document, group=group, place=place)

    @classmethod
    def from_text(
        cls, text: str, *, document: str | None = None, group: str | None = None, place: Place = NOWHERE
    ) -> TagRecord:
        """A text without tags, split into words and punctuation."""
        return cls(text, tuple(word_spans(text)), None, document, group=group, place=place)

    @classmethod
    def from_entities(
        cls,
        text: str,
        marked: Sequence[Entity],
        *,
        document: str | None = None,
        group: str | None = None,
        place: Place = NOWHERE,
    ) -> TagRecord:
        """From character spans. A word with the edge of a span inside is split, so that no entity is lost."""
        ordered = sorted(marked)
        _check_entities(text, ordered, place)
        spans: list[tuple[int, int]] = []
        tags: list[str] = []
        end = 0
        for entity in ordered:
            before = word_spans(text, end, entity.start)
            inside = word_spans(text, entity.start, entity.end)
            spans += before + inside
            tags += ["O"] * len(before) + [f"B-{entity.label}"] + [f"I-{entity.label}"] * (len(inside) - 1)
            end = entity.end
        after = word_spans(text, end)
        all_tags = tuple(tags + ["O"] * len(after))
        return cls(text, tuple(spans + after), all_tags, document, group=group, place=place)


def _document(row: Row, columns: ColumnMap) -> str | None:
    """The document of a row: by its column, else by the boundaries in the file."""
    column = columns.get("document")
    if column is None or row.values.get(column) is None:
        return row.document
    return str(row.values[column])


def _check_entities(text: str, ordered: Sequence[Entity], place: Place) -> None:
    """Entities must be inside the text, not empty, without spaces at their edges, and must not overlap."""
    previous_end = 0
    for entity in ordered:
        start, end, label = entity
        name = f"the entity {start} to {end} ({label})"
        if not 0 <= start < end <= len(text):
            expected = f"0 <= start < end <= {len(text)}, the length of the text"
            message = f"{name} is not a part of the text"
            raise place.error(message, column="entities", expected=expected, kind="entity-outside")
        inner = text[start:end]
        if inner != inner.strip():
            left = start + len(inner) - len(inner.lstrip())
            right = left + len(inner.strip())
            fix = f"Write {left} to {right}." if inner.strip() else "Remove it: it contains only spaces."
            message = f"{name} begins or ends with a space: {inner!r:.60}"
            raise place.error(message, column="entities", fix=fix, kind="entity-space")
        if start < previous_end:
            fix = "Keep one of them: a word has one tag."
            message = f"{name} overlaps the one before, which ends at {previous_end}"
            raise place.error(message, column="entities", fix=fix, kind="entity-overlap")
        previous_end = end
