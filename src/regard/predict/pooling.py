"""From what a network says of a batch to what is wanted of each text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.model.transformer import Output
from regard.ragged import Ragged


def pooled(state_TD: Tensor, keep: slice, how: str | None) -> Tensor:
    if how is None:
        return state_TD[keep].clone()
    if how == "first":
        return state_TD[0].clone()  # a view would keep the whole batch
    return state_TD[keep].mean(0) if how == "mean" else state_TD[keep].amax(0)


def joined(parts: list[Tensor], counts: list[int], how: str | None) -> Tensor:
    """One vector of the windows' vectors (all of them where `how` is None); a mean weighs each by its tokens."""
    if len(parts) == 1:
        return parts[0]
    if how is None:
        return torch.cat(parts)
    stacked = torch.stack(parts)
    if how == "max":
        return stacked.amax(0)
    share = torch.tensor(counts, device=stacked.device, dtype=stacked.dtype) if how == "mean" else None
    return stacked.mean(0) if share is None else (stacked * (share / share.sum()).unsqueeze(1)).sum(0)


def split(output: Output, batch: Ragged, target: Ragged | None, *, by_token: bool) -> list[Output]:
    """One output a sequence."""
    own = batch if target is None else target
    hidden = own.split(output.hidden)
    memory = batch.split(output.memory) if output.memory is not None else [None] * len(batch)
    logits: Sequence[Tensor | None] = [None] * len(own)
    if output.logits is not None:
        logits = own.split(output.logits) if by_token else list(output.logits)
    singles = [Output(state, logit, memory=kept) for state, logit, kept in zip(hidden, logits, memory, strict=True)]
    if output.pooled is not None:
        singles = [replace(one, pooled=vector) for one, vector in zip(singles, output.pooled, strict=True)]
    if output.next_sentence is not None:
        singles = [
            replace(one, next_sentence=following) for one, following in zip(singles, output.next_sentence, strict=True)
        ]
    return singles
