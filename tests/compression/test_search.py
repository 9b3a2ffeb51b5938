"""Which candidate is chosen, and the folder that a search works in."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

from regard.compression.candidates import CandidateSpec
from regard.compression.layer_costs import layer_costs
from regard.compression.result import CandidateResult
from regard.compression.search import Entry, Search
from regard.compression.state import WorkFolder
from regard.compression.teacher import Teacher
from regard.errors import FolderError
from regard.export.int8_linear import Int8Linear, int8_layers
from regard.metrics.confidence import Score
from regard.metrics.paired.rows import RowScore, RowTable


def table(wrong: int, rows: int = 2000) -> RowTable:
    right = np.ones(rows)
    right[:wrong] = 0
    score = RowScore((0, 1), lambda sums: sums[0] / sums[1])
    return RowTable(np.stack([right, np.ones(rows)], 1), {"accuracy": score})


def entry(name: str, wrong: int, ms: float, *, margin: float = 0.01, low: float | None = None, size: int = 10) -> Entry:
    rows = table(wrong)
    accuracy = rows.value("accuracy")
    scores = {"accuracy": Score(accuracy, accuracy, accuracy)}
    margins = Score(margin, margin / 2 if low is None else low, margin)
    result = CandidateResult(name, name, scores, dev_margin=margins, latency_ms={"24": ms}, bytes=size)
    return Entry(CandidateSpec(name, name, "int8"), result, rows, rows)


def search(*entries: Entry) -> Search:
    task = mock.Mock()
    state = Search(mock.Mock(), WorkFolder(Path("none")), task, [], [], "accuracy", 0.99, None)
    state.teacher = entry("teacher", 0, 10.0, size=20)
    state.entries = list(entries)
    return state


def test_the_fastest_of_those_that_hold_the_floor() -> None:
    state = search(entry("slow", 0, 8.0), entry("fast", 2, 2.0), entry("medium", 1, 4.0))
    chosen = state.choose()
    assert chosen is not None
    assert (chosen.result.name, chosen.result.holds, chosen.result.is_chosen) == ("fast", True, True)
    assert [one.result.is_chosen for one in state.entries] == [False, True, False]


def test_the_next_one_if_the_test_rows_disagree() -> None:
    state = search(entry("lucky", 60, 1.0), entry("good", 2, 2.0))
    chosen = state.choose()
    assert chosen is not None
    assert chosen.result.name == "good"
    assert state.entries[0].result.holds is False


def test_those_that_fail_on_validation_rows_are_not_tested() -> None:
    state = search(entry("bad", 0, 1.0, margin=-0.01))
    assert state.choose() is None
    assert state.entries[0].result.holds is None


def test_those_that_are_only_possible_are_tested_last() -> None:
    few_rows = entry("few rows", 0, 1.0, margin=0.002, low=-0.001)
    assert (chosen := search(few_rows, entry("likely", 2, 4.0)).choose()) is not None
    assert chosen.result.name == "likely"
    assert (chosen := search(few_rows, entry("lucky", 60, 4.0)).choose()) is not None
    assert chosen.result.name == "few rows"


def test_a_candidate_must_be_faster_or_smaller() -> None:
    assert search(entry("slow and large", 0, 12.0, size=20)).choose() is None
    assert search(entry("slow but small", 0, 12.0, size=10)).choose() is not None


def test_the_nearest_come_first() -> None:
    state = search(entry("far", 200, 1.0), entry("near", 50, 1.0))
    assert [one.result.name for one in state.nearest()] == ["near", "far"]


TABLE = RowTable(np.arange(6.0).reshape(3, 2), {"accuracy": RowScore((0, 1))})


def test_results_and_rows_are_read_back(tmp_path: Path) -> None:
    work = WorkFolder.of(tmp_path / "small")
    assert work.path.name == "small.compress"
    work.open({"data": "x"}, overwrite=False)
    assert work.read("int8", TABLE) is None
    result = CandidateResult("int8", "int8 products")
    work.write("int8", result, TABLE, TABLE)
    stored = work.read("int8", TABLE)
    assert stored is not None
    assert stored[0] == result
    assert stored[1] is not None
    assert np.array_equal(stored[1].features, TABLE.features)
    assert work.read("int8", None) == (result, None, None)


def test_a_damaged_result_is_made_again(tmp_path: Path) -> None:
    work = WorkFolder.of(tmp_path / "small")
    work.write("int8", CandidateResult("int8", "int8 products"), None, None)
    file = work.folder("int8") / "result.json"
    file.write_text(file.read_text().replace("int8 products", "changed"))
    assert work.read("int8", None) is None


def test_only_the_same_compression_goes_on(tmp_path: Path) -> None:
    work = WorkFolder.of(tmp_path / "small")
    work.open({"data": "x", "floor": 0.9}, overwrite=False)
    work.open({"data": "x", "floor": 0.9}, overwrite=False)
    with pytest.raises(FolderError, match="differs in: floor"):
        work.open({"data": "x", "floor": 0.8}, overwrite=False)
    work.open({"data": "x", "floor": 0.8}, overwrite=True)
    work.remove()
    work.path.mkdir()
    (work.path / "mine.txt").write_text("")
    with pytest.raises(FolderError, match="holds no compression"):
        work.open({"data": "x"}, overwrite=False)


def test_every_layer_has_a_cost_and_the_network_is_unchanged(teacher: Teacher) -> None:
    network = teacher.model.network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    costs = layer_costs(teacher.model, [[2, 5, 6, 3], [2, 7, 3]])
    assert costs.keys() == int8_layers(network).keys()
    assert list(costs.values()) == sorted(costs.values(), reverse=True)
    assert not any(isinstance(module, Int8Linear) for module in network.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
