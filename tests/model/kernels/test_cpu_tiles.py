"""Sequences packed into tiles on the CPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.kernels.cases import MASKS, H, agree, few

PACKED = [(3, 3), (70, 70), (0, 0), (60, 60), (130, 130), (1, 1), (160, 160)]  # tiles shared, full, and of one's own


@pytest.mark.parametrize("bias", ["none", "learned"])
@pytest.mark.parametrize("groups", [H, 2])
@pytest.mark.parametrize("mask", [name for name, mask in MASKS.items() if mask.function is None])
def test_tiles_agree_with_the_reference(mask, groups, bias):
    agree("packed", PACKED, mask=MASKS[mask], groups=groups, bias=bias)


@few
@given(st.lists(st.integers(0, 140), max_size=6))
def test_tiles_agree_for_any_lengths(lengths):
    agree("packed", [(length, length) for length in lengths])
