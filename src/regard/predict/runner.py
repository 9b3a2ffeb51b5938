"""Runs a network on batches from the CPU; on request it is compiled and replayed as CUDA graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from regard.model import hooks as taps
from regard.model.kernels.compiled import compiled
from regard.model.kernels.cuda_graphs import GraphedForward, supports_graphs
from regard.model.network import Network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.transformer import Transformer
from regard.ragged import Ragged

BATCH_TOKENS = 8192  # default number of tokens per forward pass
OUTPUTS = "outputs"
OUTPUTS_WITH_TARGET = "outputs with target"
MIX = "mix"  # instead of a layer: the weighted sum of all layers

Call = Callable[..., Any]


class NetworkRunner:
    """The network, or its encoder up to a layer, as functions of batches.

    Each function is compiled once. Compiled and recorded code does not see hooks that are set later, so while any hook
    is set the network itself runs.
    """

    def __init__(self, network: Network, *, compile: bool) -> None:
        self.network = network
        self.compile = compile
        self._compiled: dict[int | str | None, Call] = {}

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def make_batch(self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None) -> Ragged:
        """Sequences of ids as a batch; `segments` are dropped where the network has no segment embeddings."""
        return Ragged.of(ids, segments=segments if self.network.config.segments > 1 else None)

    def outputs(self) -> Call:
        """From a batch to its `Output`."""
        return self._function(OUTPUTS)

    def outputs_with_target(self) -> Call:
        """From a source batch and a target batch to the `Output` of an encoder-decoder."""
        return self._function(OUTPUTS_WITH_TARGET)

    def hidden_states(self, layer: int | str | None) -> Call:
        """From a batch to its states after `layer` blocks; None is the last one with the final norm, "mix" all."""
        return self._function(layer)

    def _function(self, name: int | str | None) -> Call:
        plain = self._plain(name)
        if not self.compile or taps.has_hooks(self.network):
            return lambda *batches: plain(*(batch.to(self.device) for batch in batches))
        if name not in self._compiled:
            self._compiled[name] = self._compile(name, plain)
        return self._compiled[name]

    def _plain(self, name: int | str | None) -> Call:
        if name in (OUTPUTS, OUTPUTS_WITH_TARGET):
            return self.network
        if name == MIX and isinstance(self.network, BidirectionalNetwork):
            return self.network.mixture
        if isinstance(self.network, Transformer):
            assert not isinstance(name, str)
            return functools.partial(self.network.read, layers=name)
        return functools.partial(self.network.reader, layers=name)

    def _compile(self, name: int | str | None, plain: Call) -> Call:
        fast = compiled(plain, dynamic=True)
        if name != OUTPUTS_WITH_TARGET and isinstance(self.network, Transformer) and supports_graphs(self.network):
            return GraphedForward(fast, device=self.device, max_tokens=self.network.config.max_tokens)
        return lambda *batches: fast(*(batch.to(self.device) for batch in batches))
