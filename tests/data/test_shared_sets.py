"""Every public set beside the project opens with one call and its right counts."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.data.helpers import fields

from regard.data.readers import Reader, read
from regard.data.records import ClassifyRecord, DocumentRecord, PairRecord, Record

SHARED = Path(os.environ.get("REGARD_SHARED_DATA", Path(__file__).parents[2].parent / "shared" / "data"))

# set, how it is told, task, rows
SETS: list[tuple[str, dict[str, Any], str, int]] = [
    ("imdb", {}, "classify", 25_000),
    ("imdb/unlabelled.txt.gz", {}, "text", 50_000),
    ("sst2", {}, "classify", 67_349),
    ("glue/MRPC", {}, "pair", 3_668),
    ("glue/MRPC", {"columns": {"first": "#1 String", "second": "#2 String", "label": "Quality"}}, "pair", 3_668),
    ("glue/RTE", {}, "pair", 2_490),
    ("glue/CoLA", {"columns": {"label": "1", "text": "3"}}, "classify", 8_551),
    ("glue/STS-B", {}, "pair", 5_749),
    ("glue/STS-B", {"columns": {"first": 7, "second": 8, "label": 9}}, "pair", 5_749),
    ("conll2003", {}, "tag", 14_041),
    ("conll2003", {"split": "valid"}, "tag", 3_250),
    ("squad", {}, "answer", 87_599),
    ("ag_news", {}, "classify", 30_002),
    ("eng_spa", {}, "translate", 111_876),
    ("eng_spa", {"split": "valid"}, "translate", 3_508),
    ("multi30k", {"columns": {"source": "en", "target": "de"}}, "translate", 29_000),
    ("multi30k", {"split": "valid"}, "translate", 1_014),
    ("corpus/wikipedia-2015.txt.xz", {}, "text", 11_742),
    ("corpus/novels.txt.xz", {}, "text", 100),
]


def opened(name: str, **options: Any) -> Reader:
    where = SHARED / name
    if not where.exists():
        pytest.skip(f"{where} is not there: public sets are not part of the project")
    return read(where, **options)


@pytest.mark.parametrize(("name", "options", "task", "rows"), SETS)
def test_every_set_opens_with_its_right_count(name: str, options: dict[str, Any], task: str, rows: int) -> None:
    reader = opened(name, **options)
    assert reader.schema.task == task
    assert sum(1 for _ in reader) == reader.rows == rows


def labels(records: Iterator[Record] | Reader) -> Counter[Any]:
    return Counter(record.label for record in records if isinstance(record, ClassifyRecord | PairRecord))


def test_labels_are_those_of_the_sets() -> None:
    assert labels(opened("imdb")) == {"neg": 12_500, "pos": 12_500}
    assert set(labels(opened("glue/RTE"))) == {"entailment", "not_entailment"}
    assert set(labels(opened("glue/CoLA", columns={"label": 1, "text": 3}))) == {"0", "1"}
    scores = labels(opened("glue/STS-B"))
    assert (min(scores), max(scores)) == (0.0, 5.0)


def test_entities_of_conll() -> None:
    result = Counter(
        entity.label for entities in fields(opened("conll2003", split="valid"), "entities") for entity in entities
    )
    assert result == {"LOC": 1_837, "PER": 1_842, "ORG": 1_341, "MISC": 922}


def test_plain_texts() -> None:
    plays = opened("tinyshakespeare/input.txt.gz")
    words = [word for record in plays if isinstance(record, DocumentRecord) for word in record.text.split()]
    assert words == gzip.decompress((SHARED / "tinyshakespeare/input.txt.gz").read_bytes()).decode().split()
    lines = opened("analogies/questions-words.txt", format="lines")
    questions = [one.text for one in lines if isinstance(one, DocumentRecord) and not one.text.startswith(":")]
    assert {len(question.split()) for question in questions} == {4}
