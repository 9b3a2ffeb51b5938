"""Record types: one class each, with its column roles, row parsing, texts and stratum."""

from __future__ import annotations

from regard.data.labels import Label
from regard.data.records.labeled import ClassifyRecord, PairRecord
from regard.data.records.plain import DocumentRecord, MinimalRecord
from regard.data.records.question import AnswerRecord, AnswerSpan
from regard.data.records.record import (
    ColumnMap,
    Record,
    Role,
    all_roles,
    column_aliases,
    record_type_names,
    record_types,
    register_record,
    register_task,
    unregister_record,
)
from regard.data.records.tagged import TagRecord
from regard.data.records.translation import TranslateRecord
from regard.data.rows import NOWHERE, Place
from regard.data.spans import Entity

# The last is tried first when a schema is inferred, so the types that need the most specific columns come last.
for _record_type in (
    DocumentRecord,
    ClassifyRecord,
    PairRecord,
    TranslateRecord,
    TagRecord,
    AnswerRecord,
    MinimalRecord,
):
    register_record(_record_type)

__all__ = [
    "NOWHERE",
    "AnswerRecord",
    "AnswerSpan",
    "ClassifyRecord",
    "ColumnMap",
    "DocumentRecord",
    "Entity",
    "Label",
    "MinimalRecord",
    "PairRecord",
    "Place",
    "Record",
    "Role",
    "TagRecord",
    "TranslateRecord",
    "all_roles",
    "column_aliases",
    "record_type_names",
    "record_types",
    "register_record",
    "register_task",
    "unregister_record",
]
