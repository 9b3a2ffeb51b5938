"""A forward and a backward language model over the same text (ELMo, Peters et al. 2018).

Their hidden states, mixed over layers, are contextual embeddings.

Shapes: N tokens, B sequences, L embeddings and all layers, D width of both directions, E of one, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.config import RecurrentConfig
from regard.errors import InputError, did_you_mean
from regard.model.heads import ClassifierHead
from regard.model.kernels.cpu_autograd import Dropout
from regard.model.recurrent.networks import RecurrentLayers
from regard.model.recurrent.unrolled import Unrolled
from regard.model.transformer import Output
from regard.ragged import Ragged

HEADS = ("sides", "sequence", "token")


class BidirectionalEncoder(nn.Module):
    """Recurrent layers over the text in both directions, which never see each other, so that both can predict tokens.

    The states of all layers can be read: different layers hold different information.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.tokens, self.dropout = nn.Embedding(config.vocabulary, config.embedding_width), Dropout(config.dropout)
        self.depth, size = config.layers, config.embedding_width
        self.ahead, self.back = (
            nn.ModuleList(RecurrentLayers(config.cell, size, size, layers=1, dropout=0.0) for _ in range(self.depth))
            for _ in range(2)
        )

    def forward(self, batch: Ragged, *, layers: int | None = None) -> Tensor:
        """(N, D) hidden states after the last layer, or after the first `layers` (0 for the embeddings alone)."""
        return self.all_layers(batch, layers)[-1]

    def all_layers(self, batch: Ragged, layers: int | None = None) -> Tensor:
        """(L, N, D) the embeddings and the hidden states of each layer, both directions concatenated."""
        ahead_LNE = self.run_direction(batch, self.ahead[:layers])
        back_LNE = self.run_direction(batch, self.back[:layers], mirrored=True)
        return torch.cat((ahead_LNE, back_LNE), -1)

    def run_direction(self, batch: Ragged, layers: nn.ModuleList, *, mirrored: bool = False) -> Tensor:
        steps, order_N = Unrolled.of(batch), reversed_index(batch) if mirrored else slice(None)
        x_NE = self.dropout(self.tokens(batch.ids))
        outputs = [x_NE]
        for layer in layers:
            x_NE, _ = layer(x_NE[order_N], batch, steps)
            x_NE = self.dropout(x_NE[order_N])
            outputs.append(x_NE)
        return torch.stack(outputs)


class ScalarMix(nn.Module):
    """The weighted mean of all layers, with learned softmax weights and a learned scale (Peters et al. 2018)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, states_LND: Tensor) -> Tensor:
        return self.scale * torch.einsum("l,lnd->nd", self.scores.softmax(0), states_LND)


class BidirectionalNetwork(nn.Module):
    """Both language models with heads: the next and previous token, or labels from a mix of all layers."""

    def __init__(self, config: RecurrentConfig, heads: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.config = config
        self.encoder = BidirectionalEncoder(config)
        self.heads = nn.ModuleDict()
        for name, size in (heads or {}).items():
            if name == "mix":
                continue
            if name not in HEADS:
                raise InputError(f'a bidirectional language model has no head "{name}".{did_you_mean(name, HEADS)}')
            if name == "sides":
                self.heads[name] = nn.Linear(config.embedding_width, config.vocabulary)
                if config.tied:
                    self.heads[name].weight = self.encoder.tokens.weight
            else:
                self.heads[name] = ClassifierHead(config, size, dropout=config.dropout)
        if "sequence" in self.heads or "token" in self.heads:
            self.heads["mix"] = ScalarMix(config.layers + 1)

    @property
    def reader(self) -> BidirectionalEncoder:
        return self.encoder

    @property
    def decoder(self) -> None:
        """None: this network does not generate text."""

    def forward(self, batch: Ragged, target: Ragged | None = None, *, at: Tensor | None = None) -> Output:
        """Hidden states and logits; of tokens (N, 2, V): the next token and the previous one."""
        if target is not None:
            raise InputError("a network of kind encoder reads one batch, but a target was given too.")
        states_LND = self.encoder.all_layers(batch)
        hidden_ND = self.mixed(states_LND) if "mix" in self.heads else states_LND[-1]
        chosen_ND = hidden_ND if at is None else hidden_ND[at]
        pooled_BD = batch.mean(hidden_ND) if "sequence" in self.heads else None
        logits = None
        if "sides" in self.heads:
            last_ND = states_LND[-1] if at is None else states_LND[-1, at]
            logits = self.heads["sides"](last_ND.unflatten(-1, (2, -1)))
        elif "token" in self.heads:
            logits = self.heads["token"](chosen_ND)
        elif "sequence" in self.heads:
            logits = self.heads["sequence"](pooled_BD)
        return Output(chosen_ND, logits, pooled_BD)

    def mixture(self, batch: Ragged) -> Tensor:
        """(N, D) a mix of all layers at every token."""
        return self.mixed(self.encoder.all_layers(batch))

    def mixed(self, states_LND: Tensor) -> Tensor:
        """(N, D) the learned mix of all layers; their mean without a learned one."""
        mixed_ND: Tensor = self.heads["mix"](states_LND) if "mix" in self.heads else states_LND.mean(0)
        return mixed_ND


def reversed_index(batch: Ragged) -> Tensor:
    """(N,) index that reverses each sequence."""
    flat = torch.arange(batch.tokens, device=batch.ids.device)
    first, last = batch.bounds[:-1].long(), batch.bounds[1:].long()
    return (first + last)[batch.sequence_ids] - 1 - flat
