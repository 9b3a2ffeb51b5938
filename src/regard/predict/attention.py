"""Attention weights of a text: one set of matrices, or one for each window of a text that is too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.config import RecurrentConfig
from regard.data.batching.sequences import SequenceWindow, split_into_windows
from regard.errors import InputError
from regard.model import hooks as taps
from regard.predict.inputs import check_encoding
from regard.text.encoding import Encoding

if TYPE_CHECKING:
    from regard.predict.model import Model


@dataclass(frozen=True, eq=False)
class AttentionWindow:
    """The weights of one window. Rows of a matrix attend to columns; both are `tokens`."""

    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]  # code points of the text each token comes from; (0, 0) for special tokens
    texts: tuple[int | None, ...]  # 0 or 1: the text or its pair; None for special tokens
    weights: Mapping[int, Tensor]  # (heads, tokens, tokens) by layer


class AttentionWeights(Mapping[int, Tensor]):
    """Weights by layer, (heads, tokens, tokens); of a text that was read in several windows, those of `windows`."""

    def __init__(self, windows: Sequence[AttentionWindow]) -> None:
        self.windows = tuple(windows)

    @property
    def tokens(self) -> tuple[str, ...]:
        return self._only.tokens

    @property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        return self._only.offsets

    @property
    def _only(self) -> AttentionWindow:
        if len(self.windows) > 1:
            raise InputError(
                f"this text is longer than the model's window and was read in {len(self.windows)}, each with weights "
                "of its own. Take them from .windows."
            )
        return self.windows[0]

    def __getitem__(self, layer: int) -> Tensor:
        return self._only.weights[layer]

    def __iter__(self) -> Iterator[int]:
        return iter(self.windows[0].weights)

    def __len__(self) -> int:
        return len(self.windows[0].weights)

    def __repr__(self) -> str:
        return f"AttentionWeights(layers {list(self)}, {len(self.windows)} window{'s' * (len(self.windows) > 1)})"


def attention_windows(
    model: Model,
    text: str,
    pair: str | None = None,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Iterator[AttentionWindow]:
    """The weights of each window, one after the other: those of a whole book need not fit in memory."""
    if isinstance(model.config, RecurrentConfig):
        raise InputError(f"a {model.family} model is recurrent: its tokens do not attend to each other.")
    tokenizer = model.require_tokenizer()
    encoding = tokenizer.encode(text, pair)
    check_encoding(encoding, "the text", model.config.vocabulary)
    longest = model.config.max_tokens
    if pair is not None and longest is not None and len(encoding.ids) > longest:
        raise InputError(
            f"the two texts have {len(encoding.ids)} tokens together; this network has places for {longest}. "
            "Give shorter ones, or one text alone, which is read in windows."
        )
    names = [tokenizer.backend.id_to_token(token) or "" for token in encoding.ids]
    for piece, places in _pieces(encoding, longest):
        yield AttentionWindow(
            tokens=tuple(names[place] for place in places),
            offsets=tuple(encoding.offsets[place] for place in places),
            texts=tuple(encoding.sequence_ids[place] for place in places),
            weights=_weights(model, piece, layers, heads),
        )


def _pieces(encoding: Encoding, longest: int | None) -> Iterator[tuple[SequenceWindow, Sequence[int]]]:
    """Each window with the places of its tokens in the text: what `cut` makes of the places themselves."""
    places = Encoding(
        tuple(range(len(encoding.ids))),
        encoding.segments,
        encoding.offsets,
        encoding.word_ids,
        encoding.special,
        encoding.sequence_ids,
    )
    for piece in split_into_windows(0, places, longest):
        yield replace(piece, ids=[encoding.ids[place] for place in piece.ids]), piece.ids


@torch.inference_mode()
def _weights(
    model: Model, piece: SequenceWindow, layers: Sequence[int] | None, heads: Sequence[int] | None
) -> dict[int, Tensor]:
    batch = model.make_batch([piece.ids], [piece.segments]).to(model.device)
    seen = taps.attention(model.network, batch, layers=layers, heads=heads, stack="reader")
    return {layer: found[0] for layer, found in seen.items()}
