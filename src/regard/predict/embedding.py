"""Vectors of texts: hidden states of one layer, pooled over the tokens of each text."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.checkpoint.folder import Checkpoint
from regard.config import POOLS
from regard.data.batching.sequences import SequenceWindow, split_into_windows, token_batches
from regard.data.inputs import check_texts
from regard.errors import InputError, NotFinite, did_you_mean, setting
from regard.model.network import Network
from regard.model.ngram_language import NgramNetwork
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork
from regard.predict.inputs import check_encoding
from regard.predict.runner import BATCH_TOKENS, MIX, NetworkRunner
from regard.progress import OnProgress, Progress
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # imported by `search`: embedding does not need it
    from regard.predict.search.passages import Match

TEXTS_AT_ONCE = 1024  # texts that are tokenized together: offsets of all texts at once would be gigabytes


class EmbeddingMixin:
    """The part of `Model` that computes vectors of texts and searches with them."""

    checkpoint: Checkpoint
    compile: bool

    @property
    def pooling(self) -> str:
        """The default pooling of `embed`: that of the folder (sentence-transformers), else "mean"."""
        return self.checkpoint.pooling or "mean"

    @functools.cached_property
    def _runner(self) -> NetworkRunner:
        return NetworkRunner(self.inference_network, compile=self.compile)

    @property
    def inference_network(self) -> Network:
        """The network as the engine computes it; implemented by `Model`."""
        raise NotImplementedError

    def require_tokenizer(self) -> Tokenizer:
        """The tokenizer; implemented by `Model`."""
        raise NotImplementedError

    def embed(
        self,
        texts: Iterable[str],
        *,
        layer: int | str = -1,
        pooling: str = "auto",
        normalize: bool = False,
        batch_tokens: int = BATCH_TOKENS,
        progress: OnProgress | None = None,
    ) -> NDArray[np.float32]:
        """One vector per text, as an array of shape (texts, width).

        layer: 0 is the embeddings, 1 the first block, -1 the last; "mix" is the weighted sum of all layers of a
            bidirectional language model (ELMo).
        pooling: "mean", "max" or "first" (the first token); "auto" is that of the model's folder, else "mean".
        normalize: scale every vector to length 1, so that a dot product is a cosine.

        A text longer than the model's maximum is split into overlapping windows; each token is taken from the window
        with the most context around it. With "first" the result is the mean over the windows' first tokens.
        """
        chosen = self.pooling if pooling == "auto" else pooling
        check_pooling(chosen)
        vectors = self._embed(texts, layer, chosen, normalize, batch_tokens, progress)
        return torch.stack(vectors).numpy()

    def embed_tokens(
        self,
        texts: Iterable[str],
        *,
        layer: int | str = -1,
        normalize: bool = False,
        batch_tokens: int = BATCH_TOKENS,
        progress: OnProgress | None = None,
    ) -> list[NDArray[np.float32]]:
        """One array per text with one vector per token, special tokens included: (tokens, width).

        `layer` and `normalize` are those of `embed`.
        """
        vectors = self._embed(texts, layer, None, normalize, batch_tokens, progress)
        return [vector.numpy() for vector in vectors]

    def _embed(
        self,
        texts: Iterable[str],
        layer: int | str,
        pooling: str | None,
        normalize: bool,
        batch_tokens: int,
        progress: OnProgress | None,
    ) -> list[Tensor]:
        return embed_texts(
            self._runner,
            self.require_tokenizer(),
            check_texts(texts),
            layer=layer,
            pooling=pooling,
            normalize=normalize,
            batch_tokens=batch_tokens,
            progress=progress,
        )

    def search(
        self,
        texts: Iterable[str],
        query: str | Sequence[str],
        *,
        top: int = 10,
        window: int | None = None,
        pooling: str = "auto",
        batch_tokens: int = BATCH_TOKENS,
        progress: OnProgress | None = None,
    ) -> list[Match] | list[list[Match]]:
        """The `top` texts with the highest cosine similarity to a query, best first; one list per query of several.

        A text longer than `window` tokens (default: the model's maximum) is searched in overlapping passages.
        `regard.search` does the same for a file and caches the vectors.
        """
        from regard.predict.search.passages import search_texts

        matches = search_texts(
            functools.partial(self.embed, pooling=pooling, normalize=True, batch_tokens=batch_tokens),
            self.require_tokenizer(),
            texts,
            query,
            top=top,
            window=window,
            max_tokens=self.checkpoint.config.max_tokens,
            progress=progress,
        )
        return matches[0] if isinstance(query, str) else matches


@torch.inference_mode()
def embed_texts(
    runner: NetworkRunner,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    layer: int | str,
    pooling: str | None,
    normalize: bool,
    batch_tokens: int,
    progress: OnProgress | None,
) -> list[Tensor]:
    """One tensor per text: (width,), or (tokens, width) where `pooling` is None.

    A text longer than the network's maximum is split into overlapping windows. Each of its tokens is taken from the
    window with the most context around it; pooling joins the windows.
    """
    depth = resolve_layer(runner.network, layer)
    windows = text_windows(runner.network, tokenizer, texts)
    states: list[list[Tensor]] = [[] for _ in texts]
    counts: list[list[int]] = [[] for _ in texts]
    done = 0
    for rows in token_batches([len(window.ids) for window in windows], batch_tokens):
        chosen = [windows[row] for row in rows]
        batch = runner.make_batch([window.ids for window in chosen], [window.segments for window in chosen])
        hidden = batch.split(runner.hidden_states(depth)(batch).float())
        for window, state_TD in zip(chosen, hidden, strict=True):
            states[window.text].append(pool_window(state_TD, window.keep, pooling).cpu())
            counts[window.text].append(window.keep.stop - window.keep.start)
        done += sum(window.last for window in chosen)
        if progress is not None:
            progress(Progress("texts", done, len(texts)))
    vectors = [join_windows(parts, count, pooling) for parts, count in zip(states, counts, strict=True)]
    _check_finite(vectors)
    if normalize:
        vectors = [torch.nn.functional.normalize(vector, dim=-1) for vector in vectors]
    return vectors


def check_pooling(pooling: str) -> None:
    """Raise InputError if there is no pooling of that name."""
    if pooling not in POOLS:
        raise InputError(f'{setting("pooling")} "{pooling}" is not known.{did_you_mean(pooling, [*POOLS, "auto"])}')


def resolve_layer(network: Network, layer: int | str) -> int | str | None:
    """A layer as the runner takes it: the number of blocks to run, None for all of them, or "mix"."""
    if isinstance(network, RecurrentNetwork):
        raise InputError(f"a recurrent {network.config.kind} has no vectors of texts; it generates text.")
    if isinstance(network, NgramNetwork):
        raise InputError("an n-gram language model has no vectors of texts; it generates text.")
    depth = network.reader.depth
    if layer == MIX and isinstance(network, BidirectionalNetwork):
        return MIX
    if isinstance(layer, str):
        raise InputError(
            f'{setting("layer")} is "{layer}"; expected a number, or "{MIX}" for a bidirectional language model (ELMo).'
        )
    if not -depth - 1 <= layer <= depth:
        raise InputError(
            f"{setting('layer')} {layer} was given; this network has 0 (embeddings) to {depth}, or -1 for the last."
        )
    blocks = layer % (depth + 1)
    return None if blocks == depth else blocks


def text_windows(network: Network, tokenizer: Tokenizer, texts: Sequence[str]) -> list[SequenceWindow]:
    """Every text as one sequence, or as several windows where it is too long."""
    config = network.config
    windows: list[SequenceWindow] = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        for row, encoding in enumerate(tokenizer.encode_batch(texts[start : start + TEXTS_AT_ONCE]), start):
            check_encoding(encoding, f"text {row}", config.vocabulary)
            windows += split_into_windows(row, encoding, config.max_tokens)
    return windows


def pool_window(state_TD: Tensor, keep: slice, pooling: str | None) -> Tensor:
    """The vector of one window from the tokens in `keep`: their mean, their maximum, or the window's first token."""
    if pooling is None:
        return state_TD[keep].clone()
    if pooling == "first":
        return state_TD[0].clone()  # a view would keep the whole batch in memory
    return state_TD[keep].mean(0) if pooling == "mean" else state_TD[keep].amax(0)


def join_windows(parts: list[Tensor], counts: list[int], pooling: str | None) -> Tensor:
    """One vector from those of a text's windows. A mean is weighted by the tokens of each window."""
    if len(parts) == 1:
        return parts[0]
    if pooling is None:
        return torch.cat(parts)
    stacked = torch.stack(parts)
    if pooling == "max":
        return stacked.amax(0)
    if pooling == "first":
        return stacked.mean(0)
    weights = torch.tensor(counts, device=stacked.device, dtype=stacked.dtype)
    return (stacked * (weights / weights.sum()).unsqueeze(1)).sum(0)


def _check_finite(vectors: Sequence[Tensor]) -> None:
    for number, vector in enumerate(vectors):
        if not bool(vector.isfinite().all()):
            raise NotFinite(f"text {number}")
