"""A record type defined outside of the package is read, split and checked like the built-in ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.data.check.run import check
from regard.data.readers import read
from regard.data.records import ColumnMap, Record, Role, register_record, unregister_record
from regard.data.rows import Row
from regard.data.splits import split_records
from regard.errors import DataError


@dataclass(frozen=True, slots=True)
class RecipeRecord(Record):
    """A recipe and how many minutes it takes."""

    type_name = "recipe"
    roles = (Role("recipe", ("recipe", "dish")), Role("minutes", ("minutes",)))
    required = (("recipe", "minutes"),)
    text_fields = ("recipe",)

    recipe: str
    minutes: float

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> RecipeRecord:
        minutes = row.value(columns["minutes"])
        if not str(minutes).isdigit():
            raise row.place.error(f"is {minutes}", column=columns["minutes"], expected="whole minutes")
        return cls(row.text(columns["recipe"]), float(minutes), **columns.common(row))

    @property
    def annotation(self) -> str:
        return str(self.minutes)

    @property
    def stratum(self) -> str | float:
        return self.minutes


@pytest.fixture(autouse=True)
def recipe_type() -> Iterator[None]:
    register_record(RecipeRecord)
    yield
    unregister_record("recipe")


ROWS = [(f"Boil {number} eggs and serve them warm.", number % 20) for number in range(60)]


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "recipes.csv"
    path.write_text("dish,minutes\n" + "".join(f"{text},{minutes}\n" for text, minutes in ROWS))
    return path


def test_it_is_read_from_csv_and_json_lines(tmp_path: Path, csv: Path) -> None:
    reader = read(csv)
    records = list(reader)
    assert reader.schema.task == "recipe"
    assert reader.schema.columns == {"recipe": "dish", "minutes": "minutes"}
    assert [(record.recipe, record.minutes) for record in records if isinstance(record, RecipeRecord)] == ROWS
    lines = tmp_path / "recipes.jsonl"
    lines.write_text('{"recipe": "Bake the bread.", "minutes": 50, "author": "me"}\n')
    (record,) = read(lines, columns={"group": "author"})
    assert record.values == ["Bake the bread.", 50.0, "me"]


def test_a_bad_row_is_an_error_with_its_line(csv: Path) -> None:
    csv.write_text(csv.read_text() + "Fry it.,soon\n")
    with pytest.raises(DataError, match=r"line 62, column minutes: is soon; expected whole minutes"):
        list(read(csv))


def test_it_is_split_by_its_stratum(csv: Path) -> None:
    parts = split_records(list(read(csv)), {"train": 0.75, "valid": 0.25}, seed=1)
    assert len(parts["valid"]) == 15
    fast = [row for row in parts["valid"] if ROWS[row][1] < 10]
    assert 6 <= len(fast) <= 9


def test_it_is_checked(csv: Path) -> None:
    csv.write_text(csv.read_text() + "Boil 0 eggs and serve them warm.,0\n ,3\n")
    report = check(csv)
    kinds = {finding.kind for finding in report.findings}
    assert report.task == "recipe"
    assert report.rows == 62
    assert {"duplicate", "empty-text"} <= kinds
