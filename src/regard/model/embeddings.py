"""Embeddings: token, position and segment vectors, added.

Shapes: N tokens, E embedding width, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.block import build_norm
from regard.model.kernels.cpu_autograd import Dropout
from regard.model.linear import Linear
from regard.model.positions import sinusoidal
from regard.ragged import Ragged


class Segments(nn.Embedding):
    """A vector for the segment of each token.

    One or two segments are selected with `where` instead of a lookup, whose gradient would add all tokens into two rows
    one after the other.
    """

    def forward(self, batch: Ragged) -> Tensor:  # type: ignore[override]  # a batch may have no segments
        if batch.segments is None:
            return self.weight[:1].expand(batch.tokens, -1)
        if self.num_embeddings == 2:
            return torch.where(batch.segments.unsqueeze(1) == 0, self.weight[0], self.weight[1])
        return super().forward(batch.segments)


class Embeddings(nn.Module):
    """Token + position + segment embedding, with norm, dropout and projection as the config says."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        width = config.embedding_width or config.width
        positions = config.positions
        self.tokens = tokens
        self.scale = config.width**0.5 if config.embedding_scale else 1.0
        self.offset = positions.offset
        table_size = (positions.max_tokens or 0) + positions.offset
        # The attribute names are the tensor names in saved folders of regard's own format.
        self.places = nn.Embedding(table_size, width) if positions.kind == "learned" else None
        self.table: Tensor | None
        fixed = positions.kind.startswith("sinusoidal")
        table = (
            sinusoidal(positions.max_tokens or 0, width, halves=positions.kind.endswith("halves")) if fixed else None
        )
        self.register_buffer("table", table, persistent=False)
        self.segments = Segments(config.segments, width) if config.segments else None
        self.norm = build_norm(config, width) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.projection = Linear(width, config.width) if config.embedding_width else nn.Identity()

    def forward(self, batch: Ragged) -> Tensor:
        x_NE: Tensor = self.tokens(batch.ids)
        if self.scale != 1.0:
            x_NE = x_NE * self.scale
        if self.places is not None:
            x_NE = x_NE + self.places(batch.positions + self.offset)
        elif self.table is not None:
            x_NE = x_NE + self.table[batch.positions].to(x_NE.dtype)
        if self.segments is not None:
            x_NE = x_NE + self.segments(batch)
        if torch.is_autocast_enabled(x_NE.device.type):
            x_NE = x_NE.to(
                torch.get_autocast_dtype(x_NE.device.type)
            )  # all hidden states are in the autocast dtype from here on
        x_ND: Tensor = self.projection(self.dropout(self.norm(x_NE)))
        return x_ND
