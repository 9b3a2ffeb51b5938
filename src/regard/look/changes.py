"""What a change of the text changes inside the network: every hidden state, layer by layer.

Shapes: L layers and the embeddings, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import InputError
from regard.look.reading import LookInput, Reading, ShownToken, read_text
from regard.model.hooks import record
from regard.model.transformer import Transformer
from regard.predict.model import Model


@dataclass(frozen=True, eq=False)
class HiddenChange:
    """Distances between the hidden states of two texts, at the tokens that both have in the same place or shifted.

    `pairs` are the tokens that are compared, as (place in the first, place in the second).
    """

    before: tuple[ShownToken, ...]
    after: tuple[ShownToken, ...]
    pairs: tuple[tuple[int, int], ...]
    change_LT: Tensor  # distance divided by the length of the first state, by layer (0 the embeddings) and pair


@torch.no_grad()
def hidden_states(model: Model, reading: Reading) -> list[Tensor]:
    """(T, D) the embeddings and the states after each layer of the stack that reads the text."""
    network = model.network
    if not isinstance(network, Transformer):
        raise InputError("only a Transformer has hidden states by layer to compare.")
    stack = network.reader
    name = "encoder" if network.encoder is not None else "decoder"
    with record(network, f"{name}.embeddings", f"{name}.layers.*") as outputs:
        stack(reading.batch)
    states = [outputs[f"{name}.embeddings"]]
    for i in range(stack.depth):
        index = stack.layer_index(i)
        run = [stack.layer_index(j) for j in range(i)].count(index)
        states.append(outputs.runs(f"{name}.layers.{index}")[run])
    return [state.float() for state in states]


def hidden_change(model: Model, before: LookInput, after: LookInput) -> HiddenChange:
    """How far the states move when a text is replaced by another, token by token."""
    first, second = read_text(model, before), read_text(model, after)
    pairs = matching_tokens([token.id for token in first.tokens], [token.id for token in second.tokens])
    left = torch.tensor([pair[0] for pair in pairs])
    right = torch.tensor([pair[1] for pair in pairs])
    rows = []
    for one, two in zip(hidden_states(model, first), hidden_states(model, second), strict=True):
        here_TD, there_TD = one[left], two[right]
        rows.append((here_TD - there_TD).norm(dim=1) / here_TD.norm(dim=1).clamp(min=1e-9))
    return HiddenChange(first.tokens, second.tokens, tuple(pairs), torch.stack(rows))


def matching_tokens(before: list[int], after: list[int]) -> list[tuple[int, int]]:
    """Tokens of the common beginning and end, and those between if there are equally many."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    middle = len(before) - start - end
    if middle != len(after) - start - end:
        middle = 0
    pairs = [(place, place) for place in range(start + middle)]
    return pairs + [(len(before) - place, len(after) - place) for place in range(end, 0, -1)]
