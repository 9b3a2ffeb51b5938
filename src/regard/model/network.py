"""Build any kind of network from its config."""

from __future__ import annotations

from collections.abc import Mapping

from regard.config import BagConfig, Config, NgramConfig, RecurrentConfig
from regard.model.bag import BagNetwork
from regard.model.ngram_language import NgramNetwork
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork
from regard.model.transformer import Transformer

Network = Transformer | RecurrentNetwork | BidirectionalNetwork | BagNetwork | NgramNetwork


def build_network(config: Config, heads: Mapping[str, int] | None = None) -> Network:
    """The network that the config describes, with these heads."""
    if isinstance(config, BagConfig):
        return BagNetwork(config, heads)
    if isinstance(config, NgramConfig):
        return NgramNetwork(config, heads)
    if not isinstance(config, RecurrentConfig):
        return Transformer(config, heads)
    return BidirectionalNetwork(config, heads) if config.kind == "encoder" else RecurrentNetwork(config, heads)
