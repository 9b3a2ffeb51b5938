"""Vectors of texts: hidden states of one layer, pooled over the tokens of each text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.config import POOLS
from regard.data.batching.sequences import SequenceWindow, split_into_windows, token_batches
from regard.errors import InputError, NotFinite, did_you_mean, setting
from regard.model.network import Network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork
from regard.predict.inputs import check_encoding
from regard.predict.runner import MIX, NetworkRunner
from regard.progress import OnProgress, Progress
from regard.text.tokenizer import Tokenizer

TEXTS_AT_ONCE = 1024  # texts that are tokenized together: offsets of all texts at once would be gigabytes


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
    windows = _windows(runner.network, tokenizer, texts)
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
    """Raise InputError where the name is not that of a pooling."""
    if pooling not in POOLS:
        raise InputError(f'{setting("pooling")} "{pooling}" is not known.{did_you_mean(pooling, [*POOLS, "auto"])}')


def resolve_layer(network: Network, layer: int | str) -> int | str | None:
    """A layer as the runner takes it: the number of blocks to run, None for all of them, or "mix"."""
    if isinstance(network, RecurrentNetwork):
        raise InputError(f"a recurrent {network.config.kind} has no vectors of texts; it generates text.")
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


def _windows(network: Network, tokenizer: Tokenizer, texts: Sequence[str]) -> list[SequenceWindow]:
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
