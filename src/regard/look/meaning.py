"""One word in several sentences: its vectors by layer, in two dimensions, and how similar they are.

The vector of a word is the mean of its tokens' hidden states. Layer 0 is the embedding layer; the static vector is the
token embedding alone, which is the same in every sentence.

Shapes: L layers with the embeddings, U occurrences of the word, D width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import ModelConfig
from regard.errors import InputError
from regard.look.explain.scorer import Variant, VariantBatch, embedding_modules
from regard.look.explain.tokenized import from_encoding
from regard.look.lens import layer_states
from regard.model.transformer import Transformer

if TYPE_CHECKING:
    from regard.predict.model import Model

Vectors = NDArray[np.float32]


class Occurrence(NamedTuple):
    """A word in a sentence, with its characters."""

    sentence: str
    start: int
    end: int


class SimilarToken(NamedTuple):
    """A token of the vocabulary and its cosine."""

    token: str
    similarity: float


@dataclass(frozen=True, eq=False)
class Meaning:
    """The vectors of a word in several sentences.

    points: (layers, occurrences, 2) their two main directions (PCA), by layer.
    cosines: (layers, occurrences, occurrences).
    neighbors: for each occurrence the tokens whose embeddings are nearest to its embedding-layer vector.
    static_cosines: (occurrences, occurrences) of the token embeddings alone.
    """

    word: str
    occurrences: tuple[Occurrence, ...]
    layers: tuple[int, ...]
    points: Vectors
    cosines: Vectors
    static_cosines: Vectors
    neighbors: tuple[tuple[SimilarToken, ...], ...]
    vectors: Vectors  # (layers, occurrences, width)

    def json(self) -> dict[str, Any]:
        """Everything but the vectors themselves, as a plain dict."""
        values: dict[str, Any] = {"word": self.word, "layers": list(self.layers)}
        values["occurrences"] = [one._asdict() for one in self.occurrences]
        values["neighbors"] = [[one._asdict() for one in row] for row in self.neighbors]
        for name in ("points", "cosines", "static_cosines"):
            values[name] = asdict_array(getattr(self, name))
        return values


def asdict_array(values: Vectors) -> Any:
    """An array as lists of numbers with six digits."""
    return np.asarray(values, np.float64).round(6).tolist()


@torch.no_grad()
def meaning(model: Model, word: str, sentences: Sequence[str], *, neighbors: int = 8) -> Meaning:
    """The vectors of a word in sentences, one occurrence per sentence (the first).

    Raises InputError if a sentence does not have the word, or for a network without Transformer blocks.
    """
    network = model.network
    if not isinstance(model.config, ModelConfig) or not isinstance(network, Transformer):
        raise InputError("only Transformers have vectors by layer; this is another kind of network.")
    if not sentences:
        raise InputError("no sentence was given; expected at least one with the word.")
    if not word.strip():
        raise InputError("the word is empty.")
    occurrences = tuple(_occurrence(word, sentence) for sentence in sentences)
    states = [_states(model, network, one) for one in occurrences]
    vectors_LUD = np.stack([layers for layers, _ in states], 1)
    static_UD = torch.stack([static for _, static in states])
    return Meaning(
        word=word,
        occurrences=occurrences,
        layers=tuple(range(len(vectors_LUD))),
        points=np.stack([principal_components(layer_UD) for layer_UD in vectors_LUD]),
        cosines=np.stack([cosine_table(layer_UD) for layer_UD in vectors_LUD]),
        static_cosines=cosine_table(static_UD.cpu().numpy()),
        neighbors=tuple(_neighbors(model, network, static_D, neighbors) for static_D in static_UD),
        vectors=vectors_LUD,
    )


def _occurrence(word: str, sentence: str) -> Occurrence:
    """The first place of a word in a sentence, also if its case differs; whole words before parts of others."""

    whole = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sentence, re.IGNORECASE)
    match = whole or re.search(re.escape(word), sentence, re.IGNORECASE)
    if match is None:
        raise InputError(f'the sentence "{sentence}" does not have the word "{word}".')
    return Occurrence(sentence, *match.span())


def _states(model: Model, network: Transformer, one: Occurrence) -> tuple[Vectors, Tensor]:
    """(L, D) the vector of the word in each layer, and (E,) its static vector."""
    tokenizer = model.require_tokenizer()
    encoding = tokenizer.encode(one.sentence)
    limit = model.config.max_tokens
    if limit is not None and len(encoding.ids) > limit:
        raise InputError(f"a sentence has {len(encoding.ids)} tokens; the maximum of this network is {limit}.")
    text = from_encoding(tokenizer, one.sentence, encoding, segments=model.config.segments > 1)
    tokens = [
        i
        for i, (start, end) in enumerate(text.offsets)
        if text.sequence_ids[i] == 0 and start < one.end and end > one.start
    ]
    if not tokens:
        raise InputError(f'the word "{one.sentence[one.start : one.end]}" has no token of this model.')
    sequence = text.sequences[0]
    if network.encoder is not None and network.decoder is not None:
        raise InputError("vectors of words are those of an encoder or a decoder; this model has both.")
    batch = VariantBatch.of([Variant(sequence.ids, sequence.segments, None, ())], model.device)
    layers_LD = torch.stack([state_ND[tokens].float().mean(0) for state_ND in layer_states(network, batch)])
    static_E = embedding_modules(network)[0].weight[batch.tokens.ids[tokens]].float().mean(0)
    return layers_LD.cpu().numpy(), static_E


def principal_components(vectors_UD: Vectors) -> Vectors:
    """(U, 2) the coordinates on the two main directions; signs are fixed, so that equal data gives equal pictures."""
    centered = vectors_UD - vectors_UD.mean(0)
    left, sizes, right = np.linalg.svd(centered, full_matrices=False)
    points = left[:, :2] * sizes[:2]
    largest = np.abs(right[:2]).argmax(1)
    points = points * np.sign(right[np.arange(len(largest)), largest])
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1]))).astype(np.float32)


def cosine_table(vectors_UD: Vectors) -> Vectors:
    """(U, U) the cosine of every pair."""
    unit = vectors_UD / np.maximum(np.linalg.norm(vectors_UD, axis=1, keepdims=True), 1e-12)
    table: Vectors = unit @ unit.T
    return table


def _neighbors(model: Model, network: Transformer, static_E: Tensor, count: int) -> tuple[SimilarToken, ...]:
    """The tokens with the most similar embeddings, without special tokens."""
    tokenizer = model.require_tokenizer()
    return tuple(
        SimilarToken(tokenizer.backend.id_to_token(token) or "", similarity)
        for token, similarity in nearest_tokens(model, network, static_E, count)
    )


def nearest_tokens(model: Model, network: Transformer, vector_E: Tensor, count: int) -> list[tuple[int, float]]:
    """The ids of the tokens with the most similar embeddings, without special tokens, each with its cosine."""
    tokenizer = model.require_tokenizer()
    table_VE = embedding_modules(network)[0].weight.float()[: tokenizer.size]
    similar_V = torch.nn.functional.cosine_similarity(table_VE, vector_E.unsqueeze(0), dim=-1)
    similar_V[list(tokenizer.special.values())] = -1.0
    best = similar_V.topk(min(count, len(similar_V)))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
