"""Recurrent language models from both sides of a text, whose states are embeddings.

Shapes: N tokens, B sequences, L layers, D width of a direction, E embedding, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.errors import InputError
from regard.model.recurrent import Layers
from regard.model.unrolled import Unrolled
from regard.ragged import Ragged


class TwoSided(nn.Module):
    """A language model from the left and one from the right (ELMo, Peters et al. 2018).

    Neither sees the other, so every layer may be asked for: what a word means is in none of them alone.
    """

    def __init__(
        self, vocabulary: int, *, width: int, embedding: int, layers: int = 2, cell: str = "lstm", dropout: float = 0.0
    ) -> None:
        super().__init__()
        if embedding != width:
            raise InputError(f"layers are mixed, so embeddings ({embedding}) must be as wide as states ({width}).")
        self.tokens, self.dropout = nn.Embedding(vocabulary, embedding), nn.Dropout(dropout)
        self.ahead, self.back = (
            nn.ModuleList(Layers(cell, width, width, layers=1, dropout=0.0) for _ in range(layers)) for _ in range(2)
        )
        self.words = nn.Linear(width, vocabulary)

    def forward(self, batch: Ragged) -> Tensor:
        """(L + 1, N, 2 D) the embeddings and the states of every layer, from both sides."""
        ahead_LND = self.run(batch, self.ahead)
        back_LND = self.run(batch, self.back, mirrored=True)
        return torch.cat((ahead_LND, back_LND), -1)

    def run(self, batch: Ragged, layers: nn.ModuleList, *, mirrored: bool = False) -> Tensor:
        steps, turn_N = Unrolled.of(batch), mirror(batch) if mirrored else None
        x_ND = self.dropout(self.tokens(batch.ids))
        found = [x_ND]
        for layer in layers:
            x_ND, _ = layer(x_ND if turn_N is None else x_ND[turn_N], batch, steps)
            x_ND = self.dropout(x_ND if turn_N is None else x_ND[turn_N])
            found.append(x_ND)
        return torch.stack(found)

    def loss(self, batch: Ragged) -> tuple[Tensor, Tensor]:
        """Sum and count of the surprise at what comes next and at what came before."""
        ahead_ND, back_ND = self(batch)[-1].chunk(2, -1)
        (one, count), (other, again) = (
            surprise(self.words(ahead_ND), batch, ahead=True),
            surprise(self.words(back_ND), batch, ahead=False),
        )
        return one + other, count + again


class Mix(nn.Module):
    """Layers weighed by what a task learns: a softmax over them, times one number."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, states_LND: Tensor) -> Tensor:
        return self.scale * torch.einsum("l,lnd->nd", self.scores.softmax(0), states_LND)


def mirror(batch: Ragged) -> Tensor:
    """(N,) each sequence from its end; applied twice it changes nothing."""
    flat = torch.arange(batch.tokens, device=batch.ids.device)
    first, last = batch.bounds[:-1].long(), batch.bounds[1:].long()
    return (first + last)[batch.owners] - 1 - flat


def surprise(logits_NV: Tensor, batch: Ragged, *, ahead: bool) -> tuple[Tensor, Tensor]:
    """Sum and count of the loss at every token that has a neighbour on that side."""
    edge = (batch.last() if ahead else batch.first())[batch.lengths > 0]
    keep_N = torch.ones(batch.tokens, dtype=torch.bool, device=batch.ids.device).index_fill(0, edge, False)
    wanted_N = batch.ids.roll(-1 if ahead else 1)
    losses_N = F.cross_entropy(logits_NV.float(), wanted_N, reduction="none")
    return torch.where(keep_N, losses_N, 0.0).sum(), keep_N.sum().float()
