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
