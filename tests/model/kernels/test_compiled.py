"""What the compiler remarks about itself does not reach users; everything else does."""

from __future__ import annotations

import textwrap
import warnings

import pytest
import torch

from regard.model.kernels.compiled import compiled

REMARK = """
    Online softmax is disabled on the fly since Inductor decides to
    split the reduction. Cut an issue to PyTorch if this is an
    important use case.
"""


def test_the_remark_about_its_softmax_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings are errors in this suite, so a remark that passes is silent."""
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)

    def remark(text: str) -> int:
        warnings.warn(textwrap.dedent(text), stacklevel=2)
        return 7

    with pytest.raises(UserWarning, match="Online softmax"):
        remark(REMARK)
    fast = compiled(remark, dynamic=False)
    assert fast(REMARK) == 7
    with pytest.raises(UserWarning, match="something else"):
        fast("something else")
