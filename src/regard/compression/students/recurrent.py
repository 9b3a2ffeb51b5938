"""Students with one recurrent layer in each direction (BiLSTM, BiGRU), whose token vectors are those of the teacher.

Tang et al. 2019 (https://arxiv.org/abs/1903.12136) and Mukherjee and Awadallah 2019 (https://arxiv.org/abs/1910.01769)
distill BERT into such networks. The recurrent layers have no counterpart in a Transformer: they start at random, the
token vectors from the principal directions of the teacher's embedding table.

Shapes: V tokens, D width of the teacher, E width of a direction.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from regard.checkpoint.folder import Checkpoint
from regard.compression.students.shapes import head_sizes
from regard.compression.students.vocabulary import can_trim, trim_vocabulary
from regard.config import RecurrentConfig
from regard.model.initialization import initialize
from regard.model.network import build_network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.transformer import Transformer
from regard.text.tokenizer import Tokenizer

TASKS = ("classify", "pair", "tag")
FAMILY = "elmo"  # the family of recurrent networks in both directions
STD = 0.5  # of the numbers in token vectors
DROPOUT = 0.1


@torch.no_grad()
def recurrent_student(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    *,
    cell: str,
    width: int,
    max_tokens: int | None = None,
    seed: int = 0,
) -> tuple[Checkpoint, Tokenizer]:
    """A recurrent network with the labels and the (trimmed) tokens of a Transformer. width: of each direction."""
    assert isinstance(checkpoint.network, Transformer)
    source = replace(checkpoint, network=copy.deepcopy(checkpoint.network).cpu().float())
    if can_trim(tokenizer, checkpoint):
        source, tokenizer = trim_vocabulary(source, tokenizer, texts, max_tokens=max_tokens)
    assert isinstance(source.network, Transformer)
    vectors_VE = token_vectors(source.network.reader.embeddings.tokens.weight, width)
    config = RecurrentConfig(
        vocabulary=len(vectors_VE),
        width=2 * width,
        embedding_width=width,
        kind="encoder",
        cell=cell,
        dropout=DROPOUT,
    )
    heads = {name: size for name, size in head_sizes(checkpoint).items() if name in ("sequence", "token")}
    network = build_network(config, heads)
    assert isinstance(network, BidirectionalNetwork)
    initialize(network, config, generator=torch.Generator().manual_seed(seed))
    network.encoder.tokens.weight.copy_(vectors_VE)
    return Checkpoint(FAMILY, config, network.eval(), labels=checkpoint.labels), tokenizer


def token_vectors(table_VD: Tensor, width: int) -> Tensor:
    """(V, E) the rows of a table in its principal directions, with zeros if it has fewer."""
    centered_VD = (table_VD - table_VD.mean(0)).double()
    directions_DE = torch.linalg.eigh(centered_VD.T @ centered_VD).eigenvectors[:, -width:]
    vectors_VE = (centered_VD @ directions_DE).float()
    vectors_VE = torch.nn.functional.pad(vectors_VE, (0, width - vectors_VE.shape[1]))
    return vectors_VE * (STD / vectors_VE.std().clamp(min=1e-12))
