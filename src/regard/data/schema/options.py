"""Check the options for reading data that the user has given."""

from __future__ import annotations

from typing import Any

from regard.data.formats.registry import format_names
from regard.data.schema.columns import Columns, check_roles, one_hot_columns, record_type_of_task
from regard.data.schema.schema import ReadOptions
from regard.data.tags import normalize_scheme
from regard.errors import InputError, did_you_mean, setting
from regard.text.file_encodings import parse_encoding

LABELS = ("class", "single", "multi", "number")


def read_options(*, columns: Columns | None = None, **options: Any) -> ReadOptions:
    """The options as `ReadOptions`. Raises InputError for an unknown name of a format, task, role or encoding."""
    for name, known in (("format", format_names()), ("labels", LABELS)):
        value = options.get(name)
        if value is not None and value not in known:
            raise InputError(f'{setting(name)}: "{value}" is not known.{did_you_mean(value, known)}')
    task_name = options.get("task")
    checks = {"task": record_type_of_task, "scheme": normalize_scheme, "encoding": parse_encoding}
    for name, check in checks.items():
        if options.get(name) is not None:
            options[name] = check(options[name])
    one_hot = one_hot_columns(columns or {})
    if one_hot and options.get("labels") == "number":
        raise InputError(
            f"{setting('labels', 'number')} was given with several label columns; numbers are read from one column."
        )
    return ReadOptions(columns=check_roles(columns or {}), one_hot=one_hot, task_name=task_name, **options)
