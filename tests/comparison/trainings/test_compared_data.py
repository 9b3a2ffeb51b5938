"""The rows of a comparison."""

from __future__ import annotations

from pathlib import Path

from tests.comparison.conftest import write_rows

from regard.comparison.trainings.compared_data import load_compared_data, words_per_sample


def test_parts_have_no_row_in_common(two_classes: Path) -> None:
    data = load_compared_data(two_classes)
    parts = [{record.input_texts for record in part} for part in (data.labeled.train, data.labeled.dev, data.test)]
    assert [len(part) for part in parts] == [173, 19, 48]
    assert len(set.union(*parts)) == 240
    assert data.identity == load_compared_data(two_classes).identity
    assert words_per_sample(data.test) == 6.0


def test_a_folder_with_splits(tmp_path: Path) -> None:
    for name, rows, word in (("train", 60, "many"), ("valid", 20, "few"), ("test", 40, "some")):
        path = write_rows(tmp_path / f"{name}.csv", rows)
        path.write_text(path.read_text(encoding="utf-8").replace("many", word), encoding="utf-8")
    data = load_compared_data(tmp_path)
    assert (len(data.labeled.train), len(data.labeled.dev), len(data.test)) == (60, 20, 40)
    assert data.test_source == "test split of the data"
    assert not data.labeled.split_off


def test_smaller_parts_are_inside_of_larger_ones_and_have_all_labels(two_classes: Path) -> None:
    data = load_compared_data(two_classes)
    parts = [data.part(fraction) for fraction in (1 / 64, 1 / 8, 1 / 2, 1)]
    assert [len(part.train) for part in parts] == [3, 22, 86, 173]
    rows = [{record.input_texts for record in part.train} for part in parts]
    assert rows[0] < rows[1] < rows[2] < rows[3]
    assert all({record.stratum for record in part.train} == {"'warm'", "'cold'"} for part in parts)
    assert len({part.fingerprint for part in parts}) == 4


def test_labels_and_rows_that_are_in_one_part_only(two_classes: Path, tmp_path: Path) -> None:
    test = write_rows(tmp_path / "test.csv", 300)
    text = test.read_text(encoding="utf-8").replace(" of many", " of all")
    test.write_text(text + "warm gray number 3 of many,warm\nnew,hot\n", encoding="utf-8")
    data = load_compared_data(two_classes, test=test)
    assert data.notes == (
        "1 test row of 302 are also in the training data; scores are too high",
        "1 label of the test rows not in the training data: hot",
    )
    assert data.task.labels == ("cold", "hot", "warm")
