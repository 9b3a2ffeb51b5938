"""The vectors that a sentence encoder gives to texts, before its network is trained further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from regard.baselines.ngram import Report
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.sequences import token_batches
from regard.data.records import ClassifyRecord
from regard.model.kernels.dispatch import without_tiles
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.tasks.classify import Classify

BATCH_TOKENS = 8192
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SentenceEncoder:
    """A network as a sentence encoder.

    pooling: "mean" of the hidden states of a text, or that of the "first" token. averaged: the last layer of the
    network is no part of the encoder, but averages all tokens for a head (see `regard.model.mean_layer`).
    """

    network: Network
    preprocessing: Preprocessing
    pooling: str
    averaged: bool
    dtype: torch.dtype = torch.float32

    @torch.no_grad()
    def vectors(self, texts: Sequence[str], *, report: Report | None = None) -> Vectors:
        """(T, D) the vectors of texts, of length 1. The vector of a long text is the sum of those of its windows."""
        network = self.network
        assert isinstance(network, Transformer)
        device = next(network.parameters()).device
        examples = Classify().examples([ClassifyRecord(text) for text in texts], self.preprocessing, labeled=False)
        owners = np.asarray(examples.owners)
        sums = np.zeros((len(texts), network.config.width), np.float32)
        was_training = network.training
        network.eval()
        done = 0
        for rows in token_batches(examples.lengths.tolist(), BATCH_TOKENS):
            batch = examples.take(np.array(rows, np.int64)).to(device).tokens
            with without_tiles(), torch.autocast(device.type, self.dtype, enabled=self.dtype != torch.float32):
                hidden_ND = network.read(batch, layers=network.reader.depth - self.averaged).float()
            vectors_BD = batch.mean(hidden_ND) if self.pooling == "mean" else hidden_ND[batch.first()]
            np.add.at(sums, owners[rows], vectors_BD.cpu().numpy())
            done += len(rows)
            if report is not None:
                report("computing vectors", done, len(owners))
        network.train(was_training)
        unit: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True).clip(min=1e-12)
        return unit
