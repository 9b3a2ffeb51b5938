"""From ids to vectors: the word, its place, its segment.

Shapes: N tokens, E embedding width, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.block import build_norm
from regard.model.positions import sinusoidal
from regard.ragged import Ragged


class Embeddings(nn.Module):
    """Word + place + segment, normed and projected where the settings say so."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        width = config.embedding_width or config.width
        places = config.positions
        self.tokens = tokens
        self.scale = config.width**0.5 if config.embedding_scale else 1.0
        self.offset = places.offset
        self.places = nn.Embedding((places.longest or 0) + places.offset, width) if places.kind == "learned" else None
        self.table: Tensor | None
        fixed = places.kind.startswith("sinusoidal")
        table = sinusoidal(places.longest or 0, width, halves=places.kind.endswith("halves")) if fixed else None
        self.register_buffer("table", table, persistent=False)
        self.segments = nn.Embedding(config.segments, width) if config.segments else None
        self.norm = build_norm(config, width) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(width, config.width) if config.embedding_width else nn.Identity()

    def forward(self, batch: Ragged) -> Tensor:
        x_NE: Tensor = self.tokens(batch.ids)
        if self.scale != 1.0:
            x_NE = x_NE * self.scale
        if self.places is not None:
            x_NE = x_NE + self.places(batch.positions + self.offset)
        elif self.table is not None:
            x_NE = x_NE + self.table[batch.positions].to(x_NE.dtype)
        if self.segments is not None:
            kinds = torch.zeros_like(batch.ids) if batch.segments is None else batch.segments
            x_NE = x_NE + self.segments(kinds)
        x_ND: Tensor = self.projection(self.dropout(self.norm(x_NE)))
        return x_ND
