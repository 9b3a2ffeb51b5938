"""The likeliest next word, again and again, over anything that begins and steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.model.network import Network
from regard.model.steps import one_each
from regard.ragged import Ragged


@dataclass(eq=False)
class Written:
    """What a decoder wrote for a source: without the start token, and without the end token where it came to one."""

    ids: list[int] = field(default_factory=list)
    score: float = 0.0  # log-probability of all of it
    ended: bool = False


def write(network: Network, source: Ragged, *, start_B: Tensor, end_B: Tensor, most_B: Tensor) -> list[Written]:
    """One target a source, each as long as its own `most`; those that have ended leave the batch."""
    assert network.decoder is not None
    found = [Written() for _ in range(len(source))]
    ends, room = end_B.tolist(), most_B.tolist()
    alive, next_B, cache = list(range(len(source))), start_B, network.begin(source=source)
    while alive:
        logits_BV = network.step(one_each(next_B), cache).float()
        best = logits_BV.log_softmax(-1).max(-1)
        next_B, stay = best.indices, []
        for place, (row, token, chance) in enumerate(zip(alive, next_B.tolist(), best.values.tolist(), strict=True)):
            found[row].score += chance
            if token == ends[row]:
                found[row].ended = True
                continue
            found[row].ids.append(token)
            if len(found[row].ids) < room[row]:
                stay.append(place)
        if len(stay) < len(alive):
            alive = [alive[place] for place in stay]
            kept_B = torch.tensor(stay, dtype=torch.int64, device=next_B.device)
            cache.select(kept_B)
            next_B = next_B[kept_B]
    return found
