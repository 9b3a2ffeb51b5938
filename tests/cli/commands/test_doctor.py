"""`regard doctor`."""

from __future__ import annotations

import json

import pytest
from tests.cli.helpers import run

import regard


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "doctor", "--json")
    content = json.loads(out)
    assert (status, err) == (0, "")
    assert content["regard"] == regard.__version__
    assert content["kernels"]["cpu"] == "grouped"
    status, out, _ = run(capsys, "doctor")
    assert status == 0
    assert out.splitlines()[0].startswith("regard ")
    assert "attention on cpu" in out


def test_doctor_on_a_machine_with_a_gpu_and_without_extras(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from regard import device

    gpu = device.Gpu("Some GPU", 80 * 10**9, "9.0", bf16=True, flash=True)
    kernels = {"cpu": "grouped", "cuda, bf16 or fp16": "varlen"}
    extras: dict[str, str | None] = {"serve": 'pip install "regard[serve]"'}
    other = replace(
        device.device_report(), gpus=(gpu,), kernels=kernels, extras=extras, compiler=None, memory=None, offline=True
    )
    monkeypatch.setattr(device, "device_report", lambda: other)
    _, out, _ = run(capsys, "doctor")
    for part in ("Some GPU, 80.0 GB", "varlen", 'pip install "regard[serve]"', "no C++ compiler", "HF_HUB_OFFLINE"):
        assert part in out


def test_measured_engines_have_a_row_for_each_shape(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.export import engine_times

    measured = [
        engine_times.EngineTimes("6 layers", threads, {"onnx int8": time, "int8": 9.0})
        for threads, time in ((1, 5.0), (1, 6.0), (2, 3.0))
    ]
    monkeypatch.setattr(engine_times, "all_engine_times", lambda: measured)
    _, out, _ = run(capsys, "doctor")
    rows = [line for line in out.splitlines() if line.startswith("measured engines")]
    assert len(rows) == 2
    assert "6 layers, 1 thread: onnx int8 5.0 ms, int8 9.0 ms; used: onnx int8" in rows[0]
    assert "6 layers, 2 threads: onnx int8 3.0 ms" in rows[1]
