import pytest
import torch
from torch import nn

from regard.model.dense import FEW, Linear


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 16, 64, 65])
def test_few_rows_or_many_say_the_same(rows, bias):
    ours = Linear(24, 40, bias=bias)
    theirs = nn.Linear(24, 40, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(rows, 24)
    with torch.no_grad():
        assert ours.quick(x) == (rows in FEW)
        said = ours(x)
        assert said.is_contiguous()
        torch.testing.assert_close(said, theirs(x))


def test_what_learns_or_is_cast_goes_the_usual_way():
    layer, x = Linear(8, 8), torch.randn(16, 8)
    assert not layer.quick(x)
    with torch.no_grad():
        assert not layer.quick(x.bfloat16())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert not layer.quick(x)
            assert layer(x).dtype == torch.bfloat16
    layer(x).sum().backward()
    assert layer.weight.grad is not None
