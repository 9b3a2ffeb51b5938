"""Recurrent networks with random weights."""

import torch

from regard.config import RecurrentConfig
from regard.model.initialization import initialize
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork

SOURCE, TARGET = (5, 3, 1, 7), (4, 6, 2, 1)


def build(seed=0, **settings):
    config = RecurrentConfig(**{"vocabulary": 20, "width": 8, "embedding_width": 6, "dropout": 0.0, **settings})
    network = RecurrentNetwork(config)
    initialize(network, config, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)), alpha=0.3)
    return network.double().eval()


def bidirectional(vocabulary, side, heads=("sides",)):
    config = RecurrentConfig(vocabulary, 2 * side, side, layers=2, kind="encoder", cell="lstm", dropout=0.0)
    return BidirectionalNetwork(config, dict.fromkeys(heads, 3))
