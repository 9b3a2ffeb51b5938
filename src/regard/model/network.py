"""Every kind of network, by its settings."""

from __future__ import annotations

from collections.abc import Mapping

from regard.config import Config, RecurrentConfig
from regard.model.recurrent import Recurrent
from regard.model.transformer import Transformer

Network = Transformer | Recurrent


def build(config: Config, heads: Mapping[str, int] | None = None) -> Network:
    """The network these settings describe, with these heads."""
    return Recurrent(config, heads) if isinstance(config, RecurrentConfig) else Transformer(config, heads)
