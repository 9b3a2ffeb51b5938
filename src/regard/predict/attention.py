"""Attention weights of a text by layer and head, for each window of a text that is too long for the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.config import ModelConfig, RecurrentConfig
from regard.data.batching.sequences import SequenceWindow, split_into_windows
from regard.errors import InputError, setting
from regard.model import hooks as taps
from regard.model.network import Network
from regard.predict.inputs import check_encoding
from regard.ragged import Ragged
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class AttentionWindow:
    """The weights of one window. Row i of a matrix is how much token i attends to each token."""

    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]  # start and end of each token in the text; (0, 0) for special tokens
    sequence_ids: tuple[int | None, ...]  # 0 for the text, 1 for its pair, None for special tokens
    weights: Mapping[int, Tensor]  # (heads, tokens, tokens) by layer, counted from 1


class AttentionWeights(Mapping[int, Tensor]):
    """Weights by layer, counted from 1: (heads, tokens, tokens). For a text of several windows, use `windows`."""

    def __init__(self, windows: Sequence[AttentionWindow]) -> None:
        self.windows = tuple(windows)

    @property
    def tokens(self) -> tuple[str, ...]:
        return self._single_window.tokens

    @property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        return self._single_window.offsets

    @property
    def _single_window(self) -> AttentionWindow:
        if len(self.windows) > 1:
            raise InputError(
                f"this text is longer than the model's maximum and was split into {len(self.windows)} windows. Their "
                "weights are in .windows."
            )
        return self.windows[0]

    def __getitem__(self, layer: int) -> Tensor:
        return self._single_window.weights[layer]

    def __iter__(self) -> Iterator[int]:
        return iter(self.windows[0].weights)

    def __len__(self) -> int:
        return len(self.windows[0].weights)

    def _repr_html_(self) -> str:
        """The first window, the mean of the heads of its last layer, as an inline picture."""
        from regard.predict.plots.attention_svg import attention_svg

        window = self.windows[0]
        layer = max(window.weights)
        return attention_svg(
            window.tokens, window.weights[layer].float().mean(0).tolist(), title=repr(self), layer=layer
        )

    def __repr__(self) -> str:
        return f"AttentionWeights(layers {list(self)}, {len(self.windows)} window{'s' * (len(self.windows) > 1)})"


def attention_windows(
    network: Network,
    tokenizer: Tokenizer,
    text: str,
    pair: str | None = None,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Iterator[AttentionWindow]:
    """The weights of each window, one after the other: those of a whole book need not fit in memory.

    layers: 1 is the first block, -1 the last; heads are counted from 0. All of them if not given.
    """
    config = network.config
    chosen = attention_layers(network, layers)
    encoding = tokenizer.encode(text, pair)
    check_encoding(encoding, "the text", config.vocabulary)
    max_tokens = config.max_tokens
    if pair is not None and max_tokens is not None and len(encoding.ids) > max_tokens:
        raise InputError(
            f"the two texts have {len(encoding.ids)} tokens together; the maximum of this network is {max_tokens}. "
            "Give shorter texts, or one text alone, which is split into windows."
        )
    names = [tokenizer.backend.id_to_token(token) or "" for token in encoding.ids]
    for window, positions in _windows(encoding, max_tokens):
        yield AttentionWindow(
            tokens=tuple(names[position] for position in positions),
            offsets=tuple(encoding.offsets[position] for position in positions),
            sequence_ids=tuple(encoding.sequence_ids[position] for position in positions),
            weights=_weights(network, window, chosen, heads),
        )


def attention_layers(network: Network, layers: Sequence[int] | None) -> list[int]:
    """The chosen layers as numbers from 1 on; all of them if None, and -1 is the last."""
    if isinstance(network.config, RecurrentConfig):
        raise InputError("a recurrent network has no attention between the tokens of a text.")
    if not isinstance(network.config, ModelConfig):
        raise InputError("a baseline without Transformer blocks has no attention.")
    depth = network.reader.depth
    if layers is None:
        return list(range(1, depth + 1))
    for layer in layers:
        if layer == 0:
            raise InputError(
                f"{setting('layers')} 0 is the embeddings, which have no attention. This model has layers 1 to {depth}."
            )
        if not -depth <= layer <= depth:
            raise InputError(
                f"{setting('layers')} {layer} was given; this model has layers 1 to {depth}, and -1 is the last."
            )
    return [layer if layer > 0 else depth + 1 + layer for layer in layers]


def _windows(encoding: Encoding, max_tokens: int | None) -> Iterator[tuple[SequenceWindow, Sequence[int]]]:
    """Each window with the positions of its tokens in the text."""
    positions = replace(encoding, ids=tuple(range(len(encoding.ids))))
    for window in split_into_windows(0, positions, max_tokens):
        yield replace(window, ids=[encoding.ids[position] for position in window.ids]), window.ids


@torch.inference_mode()
def _weights(
    network: Network, window: SequenceWindow, layers: Sequence[int], heads: Sequence[int] | None
) -> dict[int, Tensor]:
    segments = [window.segments] if network.config.segments > 1 else None
    batch = Ragged.of([window.ids], segments=segments).to(next(network.parameters()).device)
    blocks = [layer - 1 for layer in layers]
    weights = taps.attention(network, batch, layers=blocks, heads=heads, stack="reader")
    return {block + 1: single for block, (single,) in weights.items()}
