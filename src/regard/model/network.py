"""Every kind of network, by its settings."""

from __future__ import annotations

from collections.abc import Mapping

from regard.config import Config, RecurrentConfig
from regard.model.recurrent.bidirectional_lm import TwoSided
from regard.model.recurrent.networks import Recurrent
from regard.model.transformer import Transformer

Network = Transformer | Recurrent | TwoSided


def build(config: Config, heads: Mapping[str, int] | None = None) -> Network:
    """The network these settings describe, with these heads."""
    if not isinstance(config, RecurrentConfig):
        return Transformer(config, heads)
    return TwoSided(config, heads) if config.kind == "encoder" else Recurrent(config, heads)
