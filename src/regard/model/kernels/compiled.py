"""torch.compile without remarks that a user can do nothing about."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

# Some versions of torch warn of this choice of theirs at every long softmax on a GPU, once in each direction.
REMARK = r"\s*Online softmax is disabled"


def compiled(function: Callable[..., Any], *, dynamic: bool) -> Callable[..., Any]:
    """The function, compiled when it is first called."""
    warnings.filterwarnings("ignore", message=REMARK, category=UserWarning)
    fast: Callable[..., Any] = torch.compile(function, dynamic=dynamic)
    return fast
