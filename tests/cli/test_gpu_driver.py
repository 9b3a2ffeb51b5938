"""The driver of a GPU is started where a command will use one, and nowhere else."""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from regard.cli import gpu_driver
from regard.cli.commands import info, predict, serve, train
from regard.cli.gpu_driver import device_of, gpu_index, start_driver


class FakeDriver:
    """Notes the calls of the driver's functions; `status` is what each returns."""

    def __init__(self, status: int = 0) -> None:
        self.calls: list[str] = []
        self.status = status

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any) -> int:
            self.calls.append(name)
            return self.status

        return call


def started(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver, device: str) -> list[str]:
    monkeypatch.setattr(gpu_driver, "_torch_has_cuda", lambda: True)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setenv("CUDA_MODULE_LOADING", "LAZY")
    start_driver(device)
    for thread in threading.enumerate():
        if thread.name == "regard-gpu-driver":
            thread.join()
    return driver.calls


@pytest.mark.parametrize(
    ("device", "variable", "rank", "index"),
    [
        ("auto", "", None, 0),
        ("auto", "cpu", None, None),
        ("auto", "cuda:2", None, 2),
        ("cuda", "", None, 0),
        ("cuda:1", "", None, 1),
        ("cuda:1", "cpu", None, 1),
        ("cuda:x", "", None, None),
        ("cpu", "", None, None),
        ("mps", "", None, None),
        ("auto", "", "3", 3),
        ("auto", "cpu", "3", None),
    ],
)
def test_number_of_the_gpu(
    monkeypatch: pytest.MonkeyPatch, device: str, variable: str, rank: str | None, index: int | None
) -> None:
    monkeypatch.setenv("REGARD_DEVICE", variable)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    assert gpu_index(device) == index


def test_the_driver_gets_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    assert started(monkeypatch, FakeDriver(), "cuda") == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]


def test_an_error_of_the_driver_is_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert started(monkeypatch, FakeDriver(status=100), "cuda") == ["cuInit"]


def test_nothing_is_started_for_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert started(monkeypatch, FakeDriver(), "cpu") == []


def test_no_driver_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_driver, "DRIVER", "libno-such-driver.so.1")
    gpu_driver._start(0)


def test_a_build_of_torch_for_the_cpu_starts_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").touch()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not gpu_driver._torch_has_cuda()
    (tmp_path / "torch" / "lib" / "libtorch_cuda.so").touch()
    assert gpu_driver._torch_has_cuda()


def test_device_of_a_command() -> None:
    assert device_of(predict.COMMAND, predict.PredictCommand("model", device="cuda:1")) == "cuda:1"
    assert device_of(train.COMMAND, train.TrainCommand(["rows.csv"], out="run")) == "auto"  # type: ignore[arg-type]
    assert device_of(info.COMMAND, object()) == "cpu"


def test_no_device_where_other_processes_run_the_network() -> None:
    """The process of `regard serve` that answers HTTP would hold memory of the GPU that it never uses."""
    assert device_of(serve.COMMAND, serve.ServeCommand(("model",))) == "cpu"
    assert device_of(predict.COMMAND, predict.PredictCommand("model", ray=True)) == "cpu"
