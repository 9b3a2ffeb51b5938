"""Words that a model reads alike: the nearest tokens in its embedding table.

Variants of texts in which words are replaced by near ones stay plausible (TinyBERT, Jiao et al. 2020,
https://arxiv.org/abs/1909.10351, which takes them from GloVe vectors and a masked language model).

Shapes: V tokens, W words, D width.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from regard.model.transformer import Transformer
from regard.predict.model import Model

NEAREST = 10
CHUNK = 1024


@torch.inference_mode()
def word_neighbors(model: Model, words: Iterable[str], *, count: int = NEAREST) -> dict[str, tuple[str, ...]]:
    """The nearest words of each word that is a token of its own; empty for models without a WordPiece vocabulary."""
    network, tokenizer = model.network, model.require_tokenizer()
    if not isinstance(network, Transformer) or network.encoder is None or tokenizer.kind.lower() != "wordpiece":
        return {}
    vocabulary: dict[str, int] = tokenizer.backend.get_vocab()
    names = [token for token in vocabulary if token.isalpha() and len(token) > 1]
    if len(names) <= count:
        return {}
    table_VD = network.encoder.embeddings.tokens.weight.float()
    vectors_VD = table_VD[torch.tensor([vocabulary[name] for name in names], device=table_VD.device)]
    vectors_VD = torch.nn.functional.normalize(vectors_VD - vectors_VD.mean(0), dim=1)
    places = {name: row for row, name in enumerate(names)}
    known = [word for word in dict.fromkeys(words) if word in places]
    result: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(known), CHUNK):
        part = known[start : start + CHUNK]
        rows_W = torch.tensor([places[word] for word in part], device=table_VD.device)
        near_WK = (vectors_VD[rows_W] @ vectors_VD.T).topk(count + 1).indices.tolist()
        for word, near in zip(part, near_WK, strict=True):
            result[word] = tuple(names[row] for row in near if names[row] != word)[:count]
    return result
