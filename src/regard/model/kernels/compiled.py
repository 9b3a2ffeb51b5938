"""torch.compile without warnings that a user cannot act on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

# Some versions of torch print this for every long softmax on a GPU, forward and backward.
REMARK = r"\s*Online softmax is disabled"


def compiled(function: Callable[..., Any], *, dynamic: bool) -> Callable[..., Any]:
    """The function, compiled when it is first called."""
    warnings.filterwarnings("ignore", message=REMARK, category=UserWarning)
    fast: Callable[..., Any] = torch.compile(function, dynamic=dynamic)
    return fast
