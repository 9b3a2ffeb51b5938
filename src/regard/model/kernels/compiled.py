"""torch.compile without warnings that a user cannot act on, and with a cache that outlasts a restart of the machine."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.user_cache import user_cache

# Some versions of torch print this for every long softmax on a GPU, forward and backward.
REMARK = r"\s*Online softmax is disabled"
CACHE = "TORCHINDUCTOR_CACHE_DIR"  # where torch keeps compiled kernels; by default in the folder for temporary files


def compiled(function: Callable[..., Any], *, dynamic: bool) -> Callable[..., Any]:
    """The function, compiled when it is first called."""
    warnings.filterwarnings("ignore", message=REMARK, category=UserWarning)
    folder = cache_folder()
    if folder is not None:
        os.environ.setdefault(CACHE, str(folder))
    fast: Callable[..., Any] = torch.compile(function, dynamic=dynamic)
    return fast


def cache_folder() -> Path | None:
    """The folder for compiled kernels, one per version of torch, in the user's cache; None if it cannot be written."""
    if os.environ.get(CACHE):
        return Path(os.environ[CACHE])
    return user_cache("compiled", f"torch-{torch.__version__}")
