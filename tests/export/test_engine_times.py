"""The faster engine is measured once for each shape, and used from then on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.helpers import run
from tests.predict.models import random_checkpoint

from regard.errors import RegardError
from regard.export import engine_times, int8_linear
from regard.export.engine_times import EngineTimes, all_engine_times, faster_engine, measure
from regard.export.engines import open_engine
from regard.model.network import Network
from regard.model.transformer import Transformer

pytest.importorskip("onnxruntime")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(engine_times, "SMALL", 0)
    return tmp_path / "regard" / "engines"


def tiny(seed: int = 0) -> Transformer:
    network = random_checkpoint("tiny-bert").network
    assert isinstance(network, Transformer)
    return network


def test_the_first_engine_is_kept_unless_another_is_clearly_faster() -> None:
    assert EngineTimes("", 2, {"a": 5.0, "b": 4.8}).fastest == "a"
    assert EngineTimes("", 2, {"a": 5.0, "b": 4.0}).fastest == "b"


def test_each_shape_is_measured_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny()
    made: list[str] = []

    def maker(name: str) -> Network:
        made.append(name)
        return network

    makers = {name: lambda name=name: maker(name) for name in ("onnx int8", "int8")}
    monkeypatch.setattr(engine_times, "measure", lambda *_: {"onnx int8": 5.0, "int8": 2.0})
    name, times = faster_engine(network, makers)
    assert (name, made) == ("int8", ["onnx int8", "int8"])
    assert faster_engine(tiny(seed=1), makers) == (name, times)
    assert len(made) == 2
    (file,) = cache.iterdir()
    file.write_text("{")
    assert all_engine_times() == []
    assert faster_engine(network, makers)[0] == "int8"
    assert len(made) == 4
    monkeypatch.setattr(engine_times, "SMALL", 1 << 20)
    assert faster_engine(network, makers) == ("onnx int8", None)


def test_engines_that_fail_are_left_out(cache: Path) -> None:
    network = tiny()

    def fails() -> Network:
        raise RegardError("no oneDNN")

    assert faster_engine(network, {"onnx int8": fails, "int8": lambda: network})[0] == "int8"
    next(cache.iterdir()).unlink()
    assert faster_engine(network, {"onnx int8": fails, "int8": fails}) == ("onnx int8", None)
    assert not list(cache.iterdir())


@pytest.mark.skipif(int8_linear.ENGINE not in __import__("torch").backends.quantized.supported_engines, reason="oneDNN")
@pytest.mark.usefixtures("fast_int8")
def test_loading_measures_and_doctor_shows(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = open_engine(random_checkpoint("tiny-bert"), None, "int8")
    assert opened.name in opened.measured
    assert set(opened.measured) == {"onnx int8", "int8"}
    assert all(value > 0 for value in opened.measured.values())
    _, out, _ = run(capsys, "doctor", "--json")
    (shown,) = json.loads(out)["engines"]
    assert shown["ms"] == opened.measured
    assert shown["fastest"] == opened.name
    _, out, _ = run(capsys, "doctor")
    assert "measured engines" in out
    assert f"used: {opened.name}" in out


def test_short_networks_are_measured_with_shorter_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny()
    monkeypatch.setattr(engine_times, "LENGTHS", (4, 10**6))
    assert measure({"torch": network}, network)["torch"] > 0
