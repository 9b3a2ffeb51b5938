"""`regard export`: what it prints, and its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.helpers import run

from regard.cli.commands.export import ExportProgress
from regard.export.onnx_files import OnnxExport, OnnxFile
from regard.predict import export_folder
from regard.progress import Progress


def test_export_lists_its_files(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = OnnxFile("onnx/model.onnx", 4_000_000, ("input_ids",), ("logits",), 2.5e-7)
    monkeypatch.setattr(export_folder, "export_onnx", lambda *_, **__: OnnxExport("out", (file,)))
    status, out, _ = run(capsys, "export", "runs/reviews", "--out", "out", "--int8")
    assert status == 0
    assert out == f"{Path('out') / file.name}  4.0 MB, largest difference to torch 2.5e-07\n"
    status, out, _ = run(capsys, "export", "runs/reviews", "--out", "out", "--json")
    assert json.loads(out)["files"][0]["max_difference"] == 2.5e-7


def test_the_time_left_is_shown_in_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with ExportProgress() as shown:
        shown.on_progress(Progress("export", 0, 16, {"file": "onnx/model.onnx"}))
        assert shown.line is None
    assert capsys.readouterr().err == "writing onnx/model.onnx\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with ExportProgress() as shown:
        shown.on_progress(Progress("export", 0, 16, {"file": "onnx/model.onnx"}))
        now[0] += 4
        assert str(shown) == "about 0:12 left"
        now[0] += 20  # 24 seconds for 12 units
        shown.on_progress(Progress("export", 12, 16, {"file": "onnx/model_quantized.onnx"}))
        assert str(shown) == "about 0:08 left"
        now[0] += 9
        assert str(shown) == "a little longer than usual"
