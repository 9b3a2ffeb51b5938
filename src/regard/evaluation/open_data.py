"""Data opened for a model: what the model is asked, and a reader that reads as the training did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.data.readers import Reader, split_names
from regard.data.schema.columns import Columns
from regard.data.schema.options import read_options
from regard.data.sources.locate import DataLocation, find_sources
from regard.data.sources.sources import Source
from regard.data.usable import usable_check
from regard.errors import DataError, InputError, did_you_mean, setting
from regard.predict import Model
from regard.predict.model_task import capabilities, read_training_run, task_for
from regard.tasks import TASKS, for_pairs
from regard.tasks.language.minimal_pairs import MinimalPairs
from regard.tasks.pair import Pair
from regard.tasks.task import Task


def open_data(
    model: Model,
    data: DataLocation,
    *,
    split: str | None = None,
    format: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    labels: str | None = None,
    skip_bad: str | Path | None = None,
) -> tuple[Task, Reader]:
    """What the model is asked, and a reader that reads the data as the training did."""
    sources = find_sources(data, split=_split(data, split))
    run, separator = read_training_run(model.folder), None
    if run is not None:
        encoding = encoding or run.data.encoding_of(sources)
        columns = columns or run.data.columns_in(sources, run.task, format=format, encoding=encoding)
        separator = run.data.separator if labels in (None, "multi") else None
    seen = _seen(sources, format=format, columns=columns, encoding=encoding)
    task = _minimal(model) if seen == MinimalPairs.name else _task(model)
    if seen == Pair.record.type_name and read_training_run(model.folder) is None:
        task = for_pairs(task)  # a folder from elsewhere does not say which of the two
    options = read_options(
        columns=columns,
        task=task.name,
        format=format,
        labels=labels or task.label_style,
        encoding=encoding,
        separator=separator,
    )
    reader = Reader(sources, options, skip_bad=None if skip_bad is None else Path(skip_bad))
    if skip_bad is not None:
        reader.check = usable_check(reader.schema)
    return task, reader


def _split(data: DataLocation, split: str | None) -> str | None:
    """The split that was asked for; of a folder test, else valid."""
    there = split_names(data)
    if split is not None and split not in there:
        name = data if isinstance(data, str | Path) else "the data"
        choices = did_you_mean(split, there) if there else ""
        raise InputError(f'{setting("split")}: there is no split "{split}" in {name}.{choices}')
    return split or next((name for name in ("test", "valid", *there) if name in there), None)


def _seen(sources: list[tuple[Source, ...]], **options: Any) -> str | None:
    """The record type that is recognized from the rows alone; None where they do not say."""
    try:
        return Reader(sources, read_options(**options)).schema.task
    except DataError:
        return None


def _task(model: Model) -> Task:
    """What the model was made for. Folders from elsewhere do not say how words were hidden: then as in BERT."""
    kind = TASKS.get(model.task or "")
    if kind is not None and kind.language_model and kind.model_heads[0] in model.network.heads:
        task = kind.plain_text_task(
            model.preprocessing().tokenizer,
            vocabulary=model.config.vocabulary,
            has_settings=read_training_run(model.folder) is not None,
        )
        if task is not None:
            return task
    return task_for(model.checkpoint, model.folder)


def _minimal(model: Model) -> MinimalPairs:
    task = MinimalPairs.of(model.network)
    if task is None:
        raise InputError(
            "these are minimal pairs, but this model has no masked or causal language model head, so it cannot score "
            f"sentences. {capabilities(model.network)} Or use a pretrained language model."
        )
    return task
