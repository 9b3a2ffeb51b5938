"""Attention, Transformers and BERT: from text and a task to a small, fast model, with every intermediate in view."""

from __future__ import annotations

import importlib
import os
import platform
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.evaluation import evaluate
    from regard.predict import Model, create, load
    from regard.predict.search.search_file import search
    from regard.ragged import Ragged
    from regard.training.pretrain import pretrain
    from regard.training.train import train

# Both are read when torch is loaded or first computes, so they are set here; values of the user's own stay.
# On ARM torch gives freed memory back to the system after 10 ms and faults it in again: up to a sixth of a step on the
# CPU. There oneDNN also leaves a file perf-PID.map in the system's temporary folder for every process that computes.
if platform.machine().lower() in ("aarch64", "arm64"):
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")
    if "DNNL_JIT_PROFILE" not in os.environ:  # its older name, which the newer one would override
        os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")

__version__ = "0.1.0"

__all__ = ["Model", "Ragged", "__version__", "create", "evaluate", "load", "pretrain", "search", "train"]

# Where each public name lives. It is imported when it is first used, so that `import regard` is free of torch.
_HOMES = {
    "Model": "regard.predict",
    "Ragged": "regard.ragged",
    "create": "regard.predict",
    "evaluate": "regard.evaluation",
    "load": "regard.predict",
    "pretrain": "regard.training.pretrain",
    "search": "regard.predict.search.search_file",
    "train": "regard.training.train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
