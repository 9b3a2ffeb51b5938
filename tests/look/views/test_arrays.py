"""Arrays as text and back."""

from __future__ import annotations

import pytest
import torch

from regard.look.views.arrays import packed, rounded, unpacked


@pytest.mark.parametrize(("kind", "levels"), [("uint8", 255), ("uint16", 65535)])
def test_packed_numbers_come_back(kind: str, levels: int) -> None:
    values = torch.rand(3, 4, 5)
    array = packed(values, kind)
    assert array["shape"] == [3, 4, 5]
    assert (unpacked(array) - values).abs().max() <= 0.51 * float(values.max()) / levels


def test_zeros_and_nothing() -> None:
    assert unpacked(packed(torch.zeros(2, 2))).tolist() == [[0, 0], [0, 0]]
    assert unpacked(packed(torch.zeros(0, 2))).shape == (0, 2)


def test_rounding_keeps_significant_digits() -> None:
    assert rounded(torch.tensor([[0.000123456, 12345.678]])) == [[0.00012346, 12346.0]]
