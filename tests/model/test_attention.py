"""What a layer of attention may see."""

from dataclasses import replace

import torch
from tests.presets import transformer_config

from regard.config import AttentionConfig
from regard.ragged import Ragged


@torch.no_grad()
def test_the_mask_of_the_user_reaches_every_layer(build, tokens):
    """With each token alone, a batch of one sequence says the same as each token in the same place by itself."""
    network, batch = build("tiny-bert"), tokens([5])
    alone = network(batch, mask=lambda sequence, head, query, key: query == key).hidden
    apart = Ragged(batch.ids, torch.arange(6, dtype=torch.int32), batch.positions, 1)
    torch.testing.assert_close(alone, network(apart).hidden, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_local_layer_sees_its_window_and_a_global_one_everything(build, tokens):
    config = replace(transformer_config("tiny-bert"), layers=1)
    batch = tokens([20])
    other = replace(batch, ids=batch.ids.clone().index_fill_(0, torch.tensor([10]), 99))
    for every, far in ((0, False), (1, True)):
        network = build(replace(config, attention=AttentionConfig(4, window=3, global_every=every)))
        moved = (network(batch).hidden - network(other).hidden).abs().amax(1) > 1e-6
        assert moved.tolist() == [far or abs(place - 10) <= 3 for place in range(20)]
