from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import FolderError
from regard.serve import fastest_engine
from regard.serve.fastest_engine import load_fastest
from regard.serve.served_model import load_served
from regard.serve.settings import ServeLimits


def test_the_fastest_engine_is_used(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"torch": 5.0, "int8": 2.0, "onnx int8": 2.0}
    monkeypatch.setattr(fastest_engine, "measure", lambda model: times[model.engine])
    model, measured = load_fastest(str(trained), device="cpu")
    assert model.engine == min(measured, key=lambda name: measured[name])
    assert measured.keys() <= times.keys()
    times |= {"int8": 9.0, "onnx int8": 9.0}
    assert load_fastest(str(trained), device="cpu")[0].engine == "torch"


def test_the_measurement_is_shown(trained: Path, tmp_path: Path) -> None:
    served = load_served(
        "reviews", str(trained), ServeLimits(), lambda name, value: None, device="cpu", engine="fastest"
    )
    info = served.info().result()
    served.close()
    assert info["engine"] in info["engine_ms"]
    assert all(value > 0 for value in info["engine_ms"].values())
    with pytest.raises(FolderError):
        load_fastest(str(tmp_path))
