"""What each head is worth: the score that is lost on a data set when it is switched off (Michel et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.data.sources.locate import DataLocation
from regard.errors import InputError
from regard.evaluation.open_data import open_data
from regard.look.ablation import Head, ablate, find_stack
from regard.look.dataset.items import sample_rows
from regard.predict import Model
from regard.progress import OnProgress, Progress
from regard.tasks.inference import score_records


@dataclass(frozen=True)
class HeadImportance:
    """The score of a model, and how much of it is lost without each head and each layer; negative if it rises."""

    metric: str  # the main score of the task
    score: float  # of the whole model
    rows: int
    heads: tuple[tuple[float, ...], ...]  # (layers, heads) lost without this head
    layers: tuple[float, ...]  # lost without this layer

    def least(self, count: int) -> list[Head]:
        """The heads that are worth least, as pairs of layer (from 1) and head (from 0)."""
        ranked = [(lost, layer + 1, head) for layer, row in enumerate(self.heads) for head, lost in enumerate(row)]
        return [(layer, head) for _, layer, head in sorted(ranked)[:count]]

    def json(self) -> dict[str, Any]:
        return asdict(self)


def head_importance(
    model: Model,
    data: DataLocation,
    *,
    max_rows: int | None = 200,
    stack: str = "main",
    heads: Sequence[Head] | None = None,
    progress: OnProgress | None = None,
    **reading: Any,
) -> HeadImportance:
    """Score a model on labeled data once as it is, and once without each head and each layer.

    max_rows: rows that are scored, a random sample; all if None.
    heads: only these heads, as pairs of layer (from 1) and head (from 0); those not measured are 0.
    reading: how the data is read, as of `regard.evaluate`: split, format, columns, encoding.
    """
    part = find_stack(model.network, stack)
    task, reader = open_data(model, data, **reading)
    if task.language_model:
        raise InputError("heads are scored on labeled data; this is a language model. Train it on a task first.")
    records = sample_rows(list(reader), max_rows)
    if not records:
        raise InputError("there is no row in the data.")
    count = model.config.attention.heads  # type: ignore[union-attr]  # `find_stack` returns those of Transformers
    chosen = [(layer, head) for layer in range(1, part.depth + 1) for head in range(count)] if heads is None else heads
    run, preprocessing = model.task_runner(task), model.preprocessing()
    total = len(chosen) + part.depth + 1
    done = 0

    def score(**off: Any) -> float:
        nonlocal done
        with ablate(model.network, stack=stack, **off):
            result = score_records(task, run, records, preprocessing, device=model.device)
        done += 1
        if progress is not None:
            progress(Progress("heads", done, total))
        return result.value if result.higher else -result.value

    whole = score()
    lost = {head: whole - score(heads=[head]) for head in chosen}
    layers = tuple(whole - score(layers=[layer]) for layer in range(1, part.depth + 1))
    table = tuple(tuple(lost.get((layer, head), 0.0) for head in range(count)) for layer in range(1, part.depth + 1))
    meter = task.meter()
    whole = whole if meter.higher_is_better else -whole
    return HeadImportance(meter.main, whole, len(records), table, layers)
