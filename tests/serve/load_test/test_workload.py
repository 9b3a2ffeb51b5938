from __future__ import annotations

import itertools
import json
from pathlib import Path
from statistics import fmean

import pytest

from regard.errors import InputError
from regard.serve.load_test.workload import Workload, read_texts


def test_lengths_have_the_mean_that_was_asked_for() -> None:
    bodies = [json.loads(body) for body in itertools.islice(Workload(mean_tokens=24).bodies(0), 4000)]
    lengths = [len(body["text"].split()) for body in bodies]
    assert fmean(lengths) == pytest.approx(24, rel=0.05)
    assert max(lengths) > 70
    assert list(itertools.islice(Workload().bodies(3), 5)) == list(itertools.islice(Workload().bodies(3), 5))


def test_texts_of_a_file_and_other_routes(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("first\n\n second \n", encoding="utf-8")
    workload = Workload("/v1/embeddings", read_texts(file), fields=(("model", "m"),))
    values = [json.loads(body) for body in itertools.islice(workload.bodies(0), 20)]
    assert {value["input"] for value in values} == {"first", "second"}
    assert values[0]["model"] == "m"


def test_bad_values(tmp_path: Path) -> None:
    file = tmp_path / "empty.txt"
    file.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="no text"):
        read_texts(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_texts(tmp_path / "none.txt")
    with pytest.raises(InputError, match="mean_tokens"):
        Workload(mean_tokens=0)
    with pytest.raises(InputError, match="route"):
        Workload("embed")
