"""Maps, small maps, and products of a query and a key."""

from __future__ import annotations

import pytest
import torch
from tests.look.models import KINDS, TEXT, look_input

from regard.errors import InputError
from regard.look.heads import grid_maps, pair_products, weight_map
from regard.look.reading import AttentionPart, read_text


def part_of(kind: str = "encoder", text: str = TEXT) -> AttentionPart:
    return read_text(KINDS[kind](), look_input(text)).parts[0]


def test_small_maps_have_the_largest_weights() -> None:
    part = part_of()
    exact = [weight_map(part, layer) for layer in (1, 2)]
    assert torch.equal(torch.stack(list(grid_maps(part, 48))), torch.stack(exact))
    small = list(grid_maps(part, 4))[1]
    assert max(small.shape[1:]) <= 4
    assert torch.equal(small.amax((1, 2)), exact[1].amax((1, 2)))


@pytest.mark.parametrize("kind", ["encoder", "gpt2", "llama", "relative"])
def test_products_add_up_to_the_score(kind: str) -> None:
    for part in read_text(KINDS[kind](), look_input()).parts:
        pair = pair_products(part, 1, 1, len(part.queries) - 1, 0)
        assert sum(pair.products) == pytest.approx(pair.dot, abs=1e-4)
        assert pair.dot * pair.scale + pair.bias == pytest.approx(pair.score, abs=1e-4)
        weights = weight_map(part, 1, [1])[0]
        assert pair.weight == pytest.approx(float(weights[-1, 0]), abs=1e-6)
        scores = [pair_products(part, 1, 1, len(part.queries) - 1, key) for key in range(len(part.keys))]
        softmax = torch.tensor([-torch.inf if each.masked else each.score for each in scores]).softmax(0)
        assert torch.allclose(softmax, weights[-1], atol=1e-5)


def test_masks() -> None:
    assert part_of("gpt2").masks[0] == (None, 0)
    assert part_of("encoder").masks[0] == (None, None)
    for kind in ("local", "gpt2", "encoder", "llama"):
        part = part_of(kind)
        assert part.masks == tuple((layer.call.mask.left, layer.call.mask.right) for layer in part.layers)
    assert any(left is not None for left, _ in part_of("local").masks)
    assert pair_products(part_of("gpt2"), 1, 0, 0, 2).masked


def test_what_does_not_exist() -> None:
    part = part_of()
    with pytest.raises(InputError, match="layer 9 does not exist: the encoder has layers 1 to 2"):
        weight_map(part, 9)
    with pytest.raises(InputError, match="head 7 does not exist: each layer has heads 0 to"):
        weight_map(part, 1, [7])
    with pytest.raises(InputError, match="query 99 does not exist"):
        pair_products(part, 1, 0, 99, 0)
    with pytest.raises(InputError, match="recurrent network has no queries"):
        pair_products(part_of("gru"), 1, 0, 0, 0)
