"""Exports of annotation tools: doccano, spaCy, Label Studio and Prodigy.

Each is first converted to plain rows: a text with a list of spans or class names. The tools write spans in different
ways: see `regard.data.spans`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.data.labels import class_names
from regard.data.records import column_aliases
from regard.data.rows import ExcludedRow, OnBadRow, Row, parse_json_cell
from regard.data.spans import is_span
from regard.errors import DataError

LABEL_STUDIO, LABEL_STUDIO_MIN, PRODIGY, PRODIGY_BINARY = (
    "Label Studio JSON",
    "Label Studio JSON-MIN",
    "Prodigy JSONL",
    "Prodigy JSONL, accept or reject",
)
ANSWERS = ("accept", "reject", "ignore")
BESIDES = ("id", "annotator", "created_at", "updated_at")  # what JSON-MIN adds to the data

Values = Mapping[str, Any]


# Export formats


def export_tool(sample: Sequence[Values]) -> str:
    """Which tool wrote these rows, where they must be rearranged; "" where they need not."""
    if not sample:
        return ""
    if all(isinstance(row.get("data"), dict) and _annotations(row) is not None for row in sample):
        return LABEL_STUDIO
    if all("annotation_id" in row and ("lead_time" in row or "annotator" in row) for row in sample):
        return LABEL_STUDIO_MIN
    if all(row.get("answer") in ANSWERS and "text" in row for row in sample):
        return PRODIGY_BINARY if _is_binary(sample) else PRODIGY
    return ""


def _is_binary(sample: Sequence[Values]) -> bool:
    """Whether every row asks about the same label, so that a rejected one is an example without it."""
    labels = {row.get("label") for row in sample if isinstance(row.get("label"), str)}
    plain = all("label" in row and "accept" not in row and not row.get("spans") for row in sample)
    return plain and len(labels) == 1 and any(row["answer"] == "reject" for row in sample)


def convert_rows(
    rows: Iterator[Row], layout: str, columns: Mapping[str, str], bad: OnBadRow, *, labeled: bool
) -> Iterator[Row]:
    """Rows of an annotation tool as plain rows. Without `labeled`, rejected and skipped texts are kept too."""
    for row in rows:
        try:
            values = _plain(row, layout, columns, labeled=labeled)
        except DataError as error:
            bad(error, row.raw)
            continue
        yield row._replace(values=values)


def _plain(row: Row, layout: str, columns: Mapping[str, str], *, labeled: bool) -> dict[str, Any]:
    if layout == LABEL_STUDIO:
        values = _label_studio(row, labeled=labeled)
    elif layout in (PRODIGY, PRODIGY_BINARY):
        return _prodigy(row, labeled=labeled, binary=layout == PRODIGY_BINARY)
    else:
        values = dict(row.values)
    if "entities" in columns:
        values.setdefault(columns["entities"], [])  # an annotation without a span has no key at all
    return values


def _prodigy(row: Row, *, labeled: bool, binary: bool) -> dict[str, Any]:
    values, answer = dict(row.values), row.values.get("answer", "accept")
    if not labeled or answer == "accept":
        return values
    if answer == "reject" and binary:
        return {**values, "label": f"not {values.get('label')}"}
    raise _left_out(row, {"reject": "rejected", "ignore": "ignored"}.get(str(answer), f'answer "{answer!s:.20}"'))


def _left_out(row: Row, reason: str) -> ExcludedRow:
    return ExcludedRow(reason, file=row.place.file, line=row.place.line, row=row.place.row)


def _annotations(values: Values) -> list[Any] | None:
    value = values.get("annotations", values.get("completions"))
    return value if isinstance(value, list) else None


def _label_studio(row: Row, *, labeled: bool) -> dict[str, Any]:
    """The data of a task, and the results of its annotation under the names of their controls, as JSON-MIN has them."""
    data = row.values.get("data")
    values: dict[str, Any] = dict(data) if isinstance(data, dict) else {}
    values.setdefault("id", row.values.get("id"))
    try:
        results = _results(row)
    except ExcludedRow:
        if labeled:
            raise
        return values
    for result in results:
        value, name = result.get("value"), str(result.get("from_name"))
        if not isinstance(value, dict):
            continue
        if "labels" in value and "start" in value:
            earlier = values.get(name)
            values[name] = [*earlier, value] if isinstance(earlier, list) else [value]
        elif "choices" in value and "start" not in value:
            values[name] = {"choices": value["choices"]}
    return values


def _results(row: Row) -> list[Values]:
    """The results of the annotation. Several annotations must agree, or one must be marked as ground truth."""
    all_annotations = [one for one in _annotations(row.values) or () if isinstance(one, dict)]
    usable = [one for one in all_annotations if not one.get("was_cancelled") and not one.get("skipped")]
    if not usable:
        raise _left_out(row, "skipped by the annotator" if all_annotations else "not annotated")
    truth = [one for one in usable if one.get("ground_truth")]
    chosen = truth or usable
    results = [_list_of_objects(one.get("result")) for one in chosen]
    if any(_comparable(result) != _comparable(results[0]) for result in results[1:]):
        fix = "Mark one of them as ground truth, or delete the others."
        raise row.place.error(f"{len(chosen)} annotations differ", column="annotations", expected="one", fix=fix)
    return results[0]


def _list_of_objects(value: Any) -> list[Values]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _comparable(results: Sequence[Values]) -> list[str]:
    """The annotation without the ids and times that differ between annotators."""
    return sorted(f"{result.get('from_name')} {result.get('value')}" for result in results)


# Column roles


def annotated_roles(
    names: Sequence[str], sample: Sequence[Values], columns: Mapping[str, str], task: str | None, file: str
) -> dict[str, str]:
    """The columns named by the user, and those whose values are spans or classes of an annotation tool."""
    if task not in (None, "tag", "classify") or {"entities", "tags", "tokens"} & set(columns) or _tagged(names, sample):
        return dict(columns)
    values = {name: [parse_json_cell(row.get(name)) for row in sample] for name in names}
    nested = [name for name, cells in values.items() if any(isinstance(cell, list | dict) for cell in cells)]
    spans = [name for name in nested if _all_spans(values[name])]
    classes = [name for name in nested if _all_classes(name, values[name])]
    if "label" in columns:
        return _named_label(columns, spans, task, file)
    known = [name for name in spans if name.lower() in column_aliases()["entities"]]
    spans = known or spans
    if task == "tag":
        classes = []
    if task == "classify" and not classes:
        _refuse_spans(names, spans, file)
    if task == "classify":
        spans = []
    if len(spans) + len(classes) > 1:
        raise _ambiguous(spans, classes, file)
    roles = dict(columns)
    if spans:
        roles["entities"] = spans[0]
    elif classes:
        roles["label"] = classes[0]
    elif task is None and (label := _label_beside_no_span(names, values)) is not None:
        roles["label"] = label
    if (spans or classes) and "text" not in roles and (text := _text_column(names, sample)) is not None:
        roles["text"] = text
    return roles


def _tagged(names: Sequence[str], sample: Sequence[Values]) -> bool:
    """Whether there are words with a tag each."""

    def holds_words(role: str) -> bool:
        known = [name for name in names if name.lower() in column_aliases()[role]]
        return any(_is_words(row.get(name)) for name in known for row in sample)

    return holds_words("tokens") and holds_words("tags")


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _all_spans(values: Sequence[Any]) -> bool:
    """Whether a column contains spans: at least one, and nothing else."""
    lists = [value for value in values if value is not None]
    if not any(lists) or not all(isinstance(value, list) for value in lists):
        return False
    return all(is_span(one) for value in lists for one in value)


def _all_classes(name: str, values: Sequence[Any]) -> bool:
    """Whether a column contains Label Studio's choices, spaCy's cats or Prodigy's accepted options."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, dict) and isinstance(value.get("choices"), list) for value in present):
        return True
    if not any(present) or name not in ("cats", "accept"):
        return False
    return all(isinstance(value, list | dict) and class_names(value) is not None for value in present)


def _named_label(columns: Mapping[str, str], spans: Sequence[str], task: str | None, file: str) -> dict[str, str]:
    """The roles if the user has named the label column; if that contains spans, they are entities."""
    if columns["label"] not in spans:
        return dict(columns)
    if task == "classify":
        _refuse_spans(spans, spans, file)
    return {("entities" if role == "label" else role): name for role, name in columns.items()}


def _refuse_spans(names: Sequence[str], spans: Sequence[str], file: str) -> None:
    label = next((name for name in names if name in spans and name.lower() in column_aliases()["label"]), None)
    if label is not None:
        fix = "Leave --task out, or use --task tag; or name the column of the classes: --columns label=NAME."
        raise DataError("holds spans, not class names", file=file, column=label, expected="classes", fix=fix)


def _ambiguous(spans: Sequence[str], classes: Sequence[str], file: str) -> DataError:
    holds = [f"spans ({', '.join(spans)})"] if spans else []
    holds += [f"classes ({', '.join(classes)})"] if classes else []
    choices = [f"--columns entities={name}" for name in spans] + [f"--columns label={name}" for name in classes]
    fix = f"Say which to read: {' or '.join(choices):.160}."
    return DataError(f"has annotations of several kinds: {' and '.join(holds):.120}", file=file, fix=fix)


def _label_beside_no_span(names: Sequence[str], values: Mapping[str, Sequence[Any]]) -> str | None:
    """The label column of rows whose lists of spans are all empty: they were made for classes."""
    lists = [
        name
        for name in names
        if name.lower() in column_aliases()["entities"] and all(one == [] for one in values[name])
    ]
    if not lists:
        return None
    low = {name.lower(): name for name in names}
    label = next((low[name] for name in column_aliases()["label"] if name in low), None)
    return label if label is not None and all(isinstance(one, str) for one in values[label]) else None


def _text_column(names: Sequence[str], sample: Sequence[Values]) -> str | None:
    """The text of rows that do not call it by a usual name: the only column that is always a string."""
    if any(name.lower() in column_aliases()["text"] for name in names):
        return None
    strings = [name for name in names if all(isinstance(row.get(name), str) for row in sample)]
    strings = [name for name in strings if name not in BESIDES]
    if "data" in strings:
        return "data"
    return strings[0] if len(strings) == 1 else None
