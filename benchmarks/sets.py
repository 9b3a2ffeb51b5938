"""The data sets that trainings are compared on, read and split once for regard and for its peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, Record, TagRecord
from regard.training.load_data import LabeledData, load_data

SENTENCES = 1_500  # of SST-2 that `whole_sentences` holds out


@dataclass(frozen=True)
class DataSet:
    """Where its files are, how they are read, and how transformers' Trainer is usually run on it."""

    path: str
    batch: int
    epochs: float
    lr: float
    read: dict[str, Any] = field(default_factory=dict)
    max_length: int = 512  # where the Trainer cuts texts
    seconds: float | None = None  # what the whole training took there on one H200, as published beside this project
    overrides: dict[str, Any] = field(default_factory=dict)  # settings of regard that differ

    def load(self, root: Path) -> LabeledData:
        """Its records; a tenth is split off for scoring if the set has no validation split."""
        return load_data(root / self.path, dev_fraction=0.1, seed=0, **self.read)


SETS = {
    "sst2": DataSet("sst2/train.tsv.gz", 32, 3, 5e-5, seconds=128),
    "imdb": DataSet("imdb/train.csv.gz", 16, 3, 5e-5, seconds=111),
    "conll": DataSet("conll2003", 32, 5, 1e-4, seconds=43),
    "squad": DataSet("squad/train-v1.1.json.gz", 32, 2, 1e-4, max_length=384, seconds=135),
    "agnews": DataSet(
        "ag_news/train.csv.gz", 32, 2, 5e-5, seconds=50, read={"columns": {"text": "text", "label": "label"}}
    ),
    "mrpc": DataSet(
        "glue/MRPC/train.tsv.gz",
        32,
        4,
        1e-4,
        seconds=12,
        read={"quoting": False, "columns": {"first": "#1 String", "second": "#2 String", "label": "Quality"}},
    ),
    "rte": DataSet("glue/RTE/train.tsv.gz", 32, 4, 1e-4),
    "stsb": DataSet(
        "glue/STS-B/train.tsv.gz",
        32,
        4,
        1e-4,
        read={
            "quoting": False,
            "task": "pair",
            "labels": "number",
            "columns": {"first": "sentence1", "second": "sentence2", "label": "score"},
        },
    ),
}


def texts(record: Record) -> tuple[str, str | None]:
    """The text, or the two texts, of a record."""
    match record:
        case PairRecord():
            return record.first, record.second
        case AnswerRecord():
            return record.question, record.context
        case ClassifyRecord() | TagRecord():
            return record.text, None
    raise TypeError(type(record).__name__)


def held_out_sentences(texts: Sequence[str], count: int, *, seed: int) -> tuple[set[str], set[str]]:
    """Some of the sentences that these texts of SST-2 are phrases of, and all texts that are a part of one.

    A sentence is a phrase of at least eight words that is part of no longer one. Single words are no part.
    """
    sentences: list[str] = []
    joined = ""
    for text in sorted({text.strip() for text in texts}, key=lambda text: (-len(text), text)):
        if len(text.split()) >= 8 and f" {text} " not in joined:
            sentences.append(text)
            joined += f" {text} |"
    chosen = set(np.random.default_rng(seed).choice(sentences, count, replace=False).tolist())
    whole = "|".join(f" {text} " for text in sorted(chosen))
    parts = {text for text in texts if len(text.split()) > 1 and f" {text.strip()} " in whole}
    return chosen, parts


def whole_sentences(data: LabeledData) -> LabeledData:
    """SST-2 has phrases of sentences. Some sentences are held out, and their phrases are not trained on."""
    records = [record for record in (*data.train, *data.dev) if isinstance(record, ClassifyRecord)]
    chosen, parts = held_out_sentences([record.text for record in records], SENTENCES, seed=0)
    dev = {record.text: record for record in records if record.text.strip() in chosen}
    train: list[Record] = [record for record in records if record.text not in parts]
    return replace(data, train=train, dev=list(dev.values()), split_off=False)
