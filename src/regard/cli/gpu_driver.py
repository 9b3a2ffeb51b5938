"""The driver of a GPU, started in a thread while torch is imported.

Its start and a context on the GPU take a third of a second, the import of torch more than a second. The driver does not
hold the lock of the interpreter, so both go on at the same time. torch then uses the context that is there.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import threading
from pathlib import Path
from typing import Any

from regard.cli.command import Command

DRIVER = "libcuda.so.1"


def device_of(command: Command, arguments: Any) -> str:
    """The device on which this process will run networks; "cpu" if other processes do, or none is chosen."""
    if not command.own_process or getattr(arguments, "ray", False):
        return "cpu"
    settings = getattr(arguments, "settings", None)
    return str(getattr(arguments, "device", None) or getattr(settings, "device", None) or "cpu")


def start_driver(device: str) -> None:
    """Start the driver for a device by its name, as `pick_device` reads it; does nothing without a GPU."""
    index = gpu_index(device)
    if index is not None and _torch_has_cuda():
        threading.Thread(target=_start, args=(index,), name="regard-gpu-driver").start()


def gpu_index(device: str) -> int | None:
    """The number of the GPU that a process with this device will use, if there is one; None for the CPU."""
    if device == "auto":
        device = os.environ.get("REGARD_DEVICE", "").strip() or "auto"
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cuda"):
        return None
    number = os.environ.get("LOCAL_RANK", number or "0")  # torchrun gives each process a GPU of its own
    return int(number) if number.isdecimal() else None


def _torch_has_cuda() -> bool:
    """Whether this is a build of torch for CUDA, without importing it."""
    spec = importlib.util.find_spec("torch")
    folders = spec.submodule_search_locations if spec else None
    return any(Path(folder, "lib", "libtorch_cuda.so").exists() for folder in folders or ())


def _start(index: int) -> None:
    """Errors are left to torch, which will report them where the GPU is used."""
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")  # as torch sets it, before it starts the driver
    with contextlib.suppress(OSError, AttributeError):  # no driver, or one without these functions
        driver = ctypes.CDLL(DRIVER)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), index) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
