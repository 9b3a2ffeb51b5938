"""Arrays as JSON: whole numbers of 8 or 16 bits in base64, and the factor that turns them back."""

from __future__ import annotations

import base64
from typing import Any

import torch
from torch import Tensor

LEVELS = {"uint8": 255, "uint16": 65535}


def packed(values: Tensor, kind: str = "uint16") -> dict[str, Any]:
    """Numbers from 0 up as `kind`; the largest error is half of `max` divided by the number of levels."""
    largest = float(values.max()) if values.numel() else 0.0
    scale = LEVELS[kind] / largest if largest > 0 else 0.0
    numbers = (values.double() * scale).round().cpu().numpy().astype(kind)
    data = base64.b64encode(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()).decode("ascii")
    return {"kind": kind, "shape": list(values.shape), "max": largest, "data": data}


def unpacked(value: dict[str, Any]) -> Tensor:
    """The numbers of `packed`, as floats."""
    import numpy as np

    numbers = np.frombuffer(base64.b64decode(value["data"]), np.dtype(value["kind"]).newbyteorder("<"))
    scaled: Tensor = torch.from_numpy(numbers.astype(np.float64)) * (value["max"] / LEVELS[value["kind"]])
    return scaled.reshape(value["shape"])


def rounded(values: Tensor, digits: int = 5) -> Any:
    """Numbers as nested lists, rounded to a number of significant digits."""
    return _round(values.detach().float().cpu().tolist(), digits)


def _round(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_round(item, digits) for item in value]
    return float(f"{value:.{digits}g}")
