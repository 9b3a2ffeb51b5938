"""Rows and tables in memory are read as files are; stand-ins have what the real packages have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pytest
from tests.data.helpers import fields

import regard
from regard.data.check.run import check
from regard.data.readers import read, split_names
from regard.data.records import TagRecord
from regard.data.sources.memory import to_python
from regard.errors import DataError, InputError
from regard.training.load_data import load_data

WORDS = {"good": ("lovely", "warm", "kind"), "bad": ("cold", "dull", "rude")}
ROWS = [
    {"text": f"the {WORDS[label][number % 3]} room number {number}", "label": label}
    for number, label in enumerate(["good", "bad"] * 20)
]


class Frame:
    """What a pandas or polars frame has: going through it gives the names of its columns."""

    def __init__(self, columns: dict[Any, Any]) -> None:
        self.data = columns
        self.columns = list(columns)
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __getitem__(self, name: Any) -> Any:
        return self.data[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)


class Dataset:
    """What a `datasets.Dataset` has."""

    def __init__(self, rows: list[dict[str, Any]], **names: Any) -> None:
        self.rows = rows
        self.column_names = list(rows[0])
        self.features = {name: names.get(name, SimpleNamespace(dtype="string")) for name in rows[0]}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


class DatasetDict(dict[str, Any]):
    """Datasets by split."""


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


CLASSES = SimpleNamespace(names=["bad", "good"])
NUMBERED = [{**row, "label": CLASSES.names.index(row["label"])} for row in ROWS]
KINDS = {
    "list": lambda: ROWS,
    "tuple": lambda: tuple(ROWS),
    "columns": lambda: columns(ROWS),
    "arrays": lambda: {name: np.array(values) for name, values in columns(ROWS).items()},
    "frame": lambda: Frame(columns(ROWS)),
    "table": lambda: pyarrow.Table.from_pylist(ROWS),
    "batch": lambda: pyarrow.RecordBatch.from_pylist(ROWS),
    "dataset": lambda: Dataset(NUMBERED, label=CLASSES),
    "generator": lambda: (row for row in ROWS),
    "iterator": lambda: iter(ROWS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_as_its_rows(kind: str) -> None:
    reader = read(KINDS[kind]())
    expected = [(row["text"], row["label"]) for row in ROWS]
    assert fields(reader, "text", "label") == expected
    assert str(reader.schema) == "rows for classify (text=text, label=label): it is in memory"
    if kind in ("generator", "iterator"):
        with pytest.raises(DataError, match=r"the data: can be read only once. Give a list"):
            list(reader)
    else:
        assert fields(reader, "text", "label") == expected
    assert load_data(KINDS[kind]()).fingerprint == load_data(ROWS).fingerprint
    assert check(KINDS[kind]()).labels == {"bad": 20, "good": 20}


def test_columns_can_be_named_and_annotations_are_read() -> None:
    rows = [{"opinion": "fine", "stars": 5}, {"opinion": "bad", "stars": 1}]
    assert fields(read(rows, columns={"text": "opinion", "label": "stars"}), "label") == ["5", "1"]
    (record,) = read([{"text": "Ada met Bo", "label": [(0, 3, "PER")]}])
    assert isinstance(record, TagRecord)
    assert record.entities == ((0, 3, "PER"),)


def test_class_numbers_of_a_dataset_are_named() -> None:
    tags = SimpleNamespace(feature=SimpleNamespace(names=["O", "B-PER"]))
    for feature in (tags, [tags.feature]):
        (record,) = read(Dataset([{"tokens": ["Ada", "met"], "ner_tags": [1, 0]}], ner_tags=feature))
        assert isinstance(record, TagRecord)
        assert record.tags == ("B-PER", "O")
    unlabeled = Dataset([{"text": "a", "label": 1}, {"text": "b", "label": -1}], label=CLASSES)
    assert fields(read(unlabeled), "label") == ["good", None]
    with pytest.raises(DataError, match="the data row 2, column label: is 7; expected a class from 0 to 1"):
        list(read(Dataset([{"text": "a", "label": 1}, {"text": "b", "label": 7}], label=CLASSES)))


def test_splits_of_a_dict_of_tables() -> None:
    parts = DatasetDict(train=Dataset(ROWS[:30]), validation=Dataset(ROWS[30:36]), test=Dataset(ROWS[36:]))
    assert split_names(parts) == ("train", "valid", "test")
    assert [len(list(read(parts, split=split))) for split in ("train", "valid", "test")] == [30, 6, 4]
    result = load_data(parts)
    assert (len(result.train), len(result.dev), result.split_off) == (30, 6, False)
    assert [split.rows for split in check({"train": ROWS[:30], "test": ROWS[30:]}).splits] == [30, 10]
    with pytest.raises(DataError, match=r'has no split "test". It has: train.'):
        read({"train": ROWS}, split="test")
    with pytest.raises(DataError, match=r"a dict of tables \(first, second\); expected some of train, valid and test"):
        read({"first": ROWS, "second": ROWS})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([ROWS[0], "text"], r'the data row 2: is "text"; expected a dict such as'),
        ([ROWS[0], {"text": 5, "label": "a"}], r"the data row 2, column text: is 5 \(int\); expected a text"),
        ([ROWS[0], {"label": "a"}], 'the data row 2: there is no "text"'),
        ([ROWS[0], {"text": "a\0", "label": "a"}], "the data row 2, column text: character 2 is a NUL"),
        ([5, 6], "the data: has no readable row"),
        ({"text": ["a"], "label": ["x", "y"]}, r"the data: the columns differ in length \(text 1, label 2\)"),
        ({"text": "a", "label": "x"}, 'the column "text" is "a"; expected a list of values'),
        (Frame({1: ["a"], "1": ["x"]}), "the data: two columns have the same name"),
        (5, r"the data is 5 \(int\); expected a path, several, rows as dicts"),
        (None, "expected a path, several, rows as dicts"),
        (b"data.csv", r"\(bytes\); expected a path"),
        ([], "no file was given"),
        (iter([]), "the data: has no readable row"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_row(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read(data))


def test_bad_rows_are_skipped_and_listed(tmp_path: Path) -> None:
    reader = read([ROWS[0], 5, {"text": None, "label": "a"}, ROWS[1]], skip_bad=tmp_path / "bad.jsonl")
    assert (len(list(reader)), reader.bad_rows) == (2, 2)
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 2


def test_missing_values_are_none() -> None:
    missing = type("NAType", (), {})()
    assert [to_python(value) for value in (math.nan, np.float64("nan"), missing, None)] == [None] * 4
    assert to_python(np.int64(3)) == 3
    assert to_python({"a": np.array([1, 2]), "b": ("x", np.str_("y"))}) == {"a": [1, 2], "b": ["x", "y"]}
    assert to_python(pyarrow.scalar("text")) == "text"
    frame = Frame({"text": ["a", "b", "c"], "label": ["x", math.nan, "y"]})
    assert fields(read(frame), "label") == ["x", None, "y"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("memory") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.training.output.write_run.draw_curves", lambda *_, **__: None)
        done = regard.train(ROWS, preset="tiny-bert", epochs=1, batch_size=8, lr=1e-3, device="cpu", out=out)
    assert (done.task, done.rows) == ("classify", 36)
    return regard.load(out, device="cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_evaluated_and_used(model: Any, kind: str) -> None:
    result = regard.evaluate(model, KINDS[kind]())
    assert (result.task, result.rows) == ("classify", 40)
    expected = [answer.json() for answer in model.predict([row["text"] for row in ROWS])]
    assert [answer.json() for answer in model.predict(KINDS[kind]())] == expected


def test_vectors_are_of_texts_not_of_column_names(model: Any) -> None:
    expected = model.embed([row["text"] for row in ROWS])
    for kind in ("frame", "columns", "table"):
        np.testing.assert_array_equal(model.embed(KINDS[kind]()), expected)
    with pytest.raises(
        InputError, match=r'a table with opinion was given; give the texts alone, such as data\["text"\]'
    ):
        model.embed({"opinion": ["fine"]})


def test_predict_names_what_it_cannot_use(model: Any) -> None:
    assert len(model.predict(pyarrow.array(["fine", "bad"]))) == 2
    with pytest.raises(InputError, match="dict of tables was given"):
        model.predict({"train": ROWS, "test": ROWS})
    with pytest.raises(InputError, match="one dict was given where a list was expected"):
        model.predict({"text": "fine"})
    with pytest.raises(InputError, match="input 1 is None"):
        model.predict(Frame({"text": ["fine", math.nan]}))
    with pytest.raises(InputError, match='there is no split "dev" in the data'):
        regard.evaluate(model, ROWS, split="dev")


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(ROWS)
    frame.loc[1, "label"] = None
    assert fields(read(frame), "label") == ["good", None, *(row["label"] for row in ROWS[2:])]


def test_polars(model: Any) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(
        [{**row, "label": None if number == 1 else row["label"]} for number, row in enumerate(ROWS)]
    )
    assert fields(read(frame), "label") == ["good", None, *(row["label"] for row in ROWS[2:])]
    assert fields(read(frame.with_columns(polars.col("label").cast(polars.Categorical))), "label")[0] == "good"
    assert split_names({"train": frame, "test": frame}) == ("train", "test")
    words = {"tokens": [["Ann", "left"], ["Bob", "ran"]], "tags": [["B-PER", "O"], ["B-PER", "O"]]}
    assert list(read(polars.DataFrame(words))) == list(read(words))
    labels = {"text": ["a b", "c d"], "labels": [["x", "y"], ["y"]]}
    assert fields(read(polars.DataFrame(labels)), "label") == [("x", "y"), ("y",)]
    np.testing.assert_array_equal(model.embed(frame["text"]), model.embed(frame))
    with pytest.raises(DataError, match=r"LazyFrame.*Call collect\(\) first"):
        read(frame.lazy())


def test_datasets() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    features = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=["bad", "good"]))
    data = datasets.Dataset.from_list(NUMBERED, features=features)
    assert fields(read(data), "label") == [row["label"] for row in ROWS]
    assert split_names(datasets.DatasetDict(train=data, test=data)) == ("train", "test")
