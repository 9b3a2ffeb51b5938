"""Attention of a recurrent decoder over the encoder's states (Bahdanau et al. 2015, Luong et al. 2015).

Shapes: B sequences, T states of a decoder and S states of an encoder in one of them, M of all encoders, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import RecurrentConfig
from regard.model.scores import build_score, scores_to_weights
from regard.ragged import Ragged


@dataclass(frozen=True, eq=False)
class EncoderStates:
    """The encoder's states, one slot per position, so that sequences can leave without a copy."""

    values_BSD: Tensor
    keys_BSD: Tensor  # prepared for the score
    lengths_B: Tensor

    def first(self, rows: int) -> EncoderStates:
        return EncoderStates(self.values_BSD[:rows], self.keys_BSD[:rows], self.lengths_B[:rows])

    def select(self, rows: Tensor) -> EncoderStates:
        return EncoderStates(self.values_BSD[rows], self.keys_BSD[rows], self.lengths_B[rows])


class AlignmentAttention(nn.Module):
    """Global or local attention of Luong et al. 2015.

    It works as follows: the decoder state is scored against every encoder state, the softmax of the scores weights the
    encoder states, and their sum, the context, is combined with the state: tanh(W [context; state]). Local attention
    looks at a window only, centered at the same position (monotone) or at a predicted one.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.window = config.window
        self.score = build_score(config.score, 1, config.width)
        self.join = nn.Linear(2 * config.width, config.width, bias=False)
        predicts = config.window is not None and config.center == "predicted"
        self.inner = nn.Linear(config.width, config.width, bias=False) if predicts else None
        self.outer = nn.Linear(config.width, 1, bias=False) if predicts else None

    def prepare(self, memory_MD: Tensor, source: Ragged) -> EncoderStates:
        """The encoder's states in slots, with keys prepared once."""
        values_BSD = to_slots(memory_MD, source)
        with without_autocast(memory_MD):
            _, keys_MHD = self.score(memory_MD[:0].unsqueeze(1), memory_MD.unsqueeze(1))
        return EncoderStates(values_BSD, to_slots(keys_MHD.squeeze(1), source), source.lengths)

    def forward(self, state_BTD: Tensor, memory: EncoderStates, places_BT: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, D) decoder states combined with their contexts, and (B, T, S) attention weights."""
        with without_autocast(state_BTD):  # unscaled sums over the whole width need full precision
            weights_BTS = self.weights(state_BTD, memory, places_BT)
            context_BTD = weights_BTS @ memory.values_BSD
        return torch.tanh(self.join(torch.cat((context_BTD, state_BTD), -1))), weights_BTS

    def weights(self, state_BTD: Tensor, memory: EncoderStates, places_BT: Tensor) -> Tensor:
        """The softmax of the scores over the source, or over a window of it."""
        rows, steps, width = state_BTD.shape
        flat_NHD, _ = self.score(state_BTD.reshape(-1, 1, width), memory.keys_BSD[:0].reshape(-1, 1, width))
        query_BHTD = flat_NHD.view(rows, 1, steps, width)
        scores_BTS = self.score.score_pairs(query_BHTD, memory.keys_BSD.unsqueeze(1)).squeeze(1)
        lengths_B11 = memory.lengths_B.view(-1, 1, 1)
        place_S = torch.arange(scores_BTS.shape[-1], device=scores_BTS.device)
        allowed = place_S < lengths_B11
        if self.window is None:
            return scores_to_weights(scores_BTS, allowed, select="soft")
        center_BT1 = self.center(state_BTD, places_BT, lengths_B11)
        distance_BTS = place_S - center_BT1
        if (
            self.outer is not None
        ):  # positions near the center count more: a Gaussian with a standard deviation of half a window
            scores_BTS = scores_BTS - 2 * (distance_BTS / self.window) ** 2
        return scores_to_weights(scores_BTS, allowed & (distance_BTS.abs() <= self.window), select="soft")

    def center(self, state_BTD: Tensor, places_BT: Tensor, lengths_B11: Tensor) -> Tensor:
        """(B, T, 1) the center of the window: the position in the target, or one that the state predicts."""
        last_B11 = (lengths_B11 - 1).clamp(min=0)
        if self.inner is None or self.outer is None:
            return torch.minimum(places_BT.unsqueeze(-1), last_B11)
        fraction_BT1 = torch.sigmoid(self.outer(torch.tanh(self.inner(state_BTD))))
        exact = torch.promote_types(fraction_BT1.dtype, torch.float32)
        return fraction_BT1.to(exact) * last_B11


def without_autocast(like: Tensor) -> torch.autocast:
    """Compute in the dtype of the weights, also under autocast."""
    return torch.autocast(like.device.type, enabled=False)


def to_slots(values_ND: Tensor, batch: Ragged) -> Tensor:
    """(B, T, D) one slot per position; zeros in slots without a token."""
    flat = torch.arange(batch.tokens, device=values_ND.device) - batch.bounds[:-1].long()[batch.sequence_ids]
    slots_BTD = values_ND.new_zeros(len(batch), batch.max_length, *values_ND.shape[1:])
    return slots_BTD.index_put((batch.sequence_ids, flat), values_ND)


def from_slots(slots_BTD: Tensor, batch: Ragged) -> Tensor:
    """(N, D) the flat tokens again, from their slots."""
    flat = torch.arange(batch.tokens, device=slots_BTD.device) - batch.bounds[:-1].long()[batch.sequence_ids]
    return slots_BTD[batch.sequence_ids, flat]
