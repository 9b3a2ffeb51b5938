"""Complete a schema from column names and the values of the first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.data.formats.json.annotations import annotated_roles, convert_rows, export_tool
from regard.data.labels import JOINED, LabelStyle, infer_label_style
from regard.data.rows import Place, Row
from regard.data.schema.columns import assign_columns, find_column
from regard.data.schema.schema import ReadOptions, Schema
from regard.data.tags import infer_scheme
from regard.errors import DataError

SAMPLE_ROWS = 500  # rows that are looked at


def infer_from_rows(name: str, schema: Schema, options: ReadOptions, rows: list[dict[str, Any]]) -> Schema:
    """By the names and values of the first rows; exports of annotation tools are converted first."""
    tool = export_tool(rows)
    if tool:
        rows = _converted(name, tool, options, rows)
        schema = replace(schema, export=tool, reason=f"{schema.reason}; {tool}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise DataError("has no readable row", file=name, expected="at least one object with columns")
    return infer_from_names(name, schema, options, names, rows)


def _converted(name: str, tool: str, options: ReadOptions, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    errors: list[DataError] = []
    raw = (Row(Place(name), row, "") for row in rows)
    converted = convert_rows(raw, tool, {}, lambda error, _: errors.append(error), labeled=options.task != "text")
    usable = [row.values for row in converted]
    if errors and not usable:
        message = f"none of the first {len(errors)} rows is usable: {errors[0].message}"
        raise DataError(message, file=name, expected="at least one that was annotated and accepted")
    return usable


def infer_from_names(
    name: str, schema: Schema, options: ReadOptions, names: Sequence[str], rows: Sequence[dict[str, Any]]
) -> Schema:
    """By the names of the columns, and by their values if these are annotations."""
    one_hot = tuple(find_column("label", column, names, name) for column in options.one_hot)
    named = annotated_roles(names, rows, options.columns, options.task, name)
    every = [*names, named["label"]] if one_hot else names
    labeled = options.labels is not None
    task, columns = assign_columns(every, named, options.task, name, labeled=labeled)
    unused = [column for column in names if column not in columns.values() and column not in one_hot]
    reason = schema.reason
    if unused:
        reason += f"; unused columns: {', '.join(unused[:8]):.120}"
    schema = replace(schema, task=task, columns=columns, reason=reason, unused=tuple(unused))
    if one_hot:
        style = LabelStyle(options.labels or "multi", one_hot=one_hot)
        return replace(schema, style=style, reason=f"{reason}; one label for each of {len(one_hot)} columns")
    if "label" in columns:
        return with_label_style(schema, options, [row.get(columns["label"]) for row in rows])
    if "tags" in columns:
        scheme = options.scheme or _tag_scheme([row.get(columns["tags"]) for row in rows])
        return replace(schema, scheme=scheme, reason=f"{reason}; tags are {scheme}")
    if "translation" in columns:
        return replace(schema, columns={**_languages(name, columns, rows), **columns})
    return schema


def with_label_style(schema: Schema, options: ReadOptions, values: Sequence[Any]) -> Schema:
    """The schema with the way its labels are written, inferred from some of them."""
    style = infer_label_style(values, schema.columns["label"], kind=options.labels, separator=options.separator)
    reason = f"{schema.reason}; labels are numbers" if style.kind == "number" else schema.reason
    if style.kind == "multi" and (style.separator != JOINED or options.labels == "multi"):
        reason = f'{reason}; labels are separated by "{style.separator}"'
    return replace(schema, style=style, reason=reason)


def _tag_scheme(values: Sequence[Any]) -> str:
    split = [value.split() if isinstance(value, str) and value[:1] != "[" else value for value in values]
    return infer_scheme(tags for tags in split if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags))


def _languages(name: str, columns: Mapping[str, str], rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Source and target of {"translation": {"en": …, "de": …}}: the two keys, in their order."""
    first = next((row.get(columns["translation"]) for row in rows), None)
    languages = list(first) if isinstance(first, dict) else []
    if len(languages) != 2 and not {"source", "target"} <= set(columns):
        message = f"there are {len(languages)} languages in the first row ({', '.join(languages)})"
        fix = "Name them: --columns source=en,target=de."
        raise DataError(message, file=name, column=columns["translation"], expected="two", fix=fix)
    unassigned = [language for language in languages if language not in columns.values()]
    return {role: columns[role] if role in columns else unassigned.pop(0) for role in ("source", "target")}
