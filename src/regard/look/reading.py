"""One text as a network reads it: its tokens, and the queries and keys of every attention of one forward pass.

Shapes: N tokens, H heads, G key-value heads, K head width, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from regard.config import ModelConfig, RecurrentConfig
from regard.data.batching.sequences import split_into_windows
from regard.data.records import TranslateRecord
from regard.errors import InputError, pluralize
from regard.look.recording import HeadInputs, layer_masks, record_layers, record_translation
from regard.model.recurrent.networks import RecurrentNetwork
from regard.model.transformer import Transformer
from regard.predict.inputs import check_encoding
from regard.predict.model import Model
from regard.ragged import Ragged
from regard.tasks.translate import LONGER, MORE, Translate
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer

MAX_TARGET = 128  # tokens of a translation that is shown
MAX_TOKENS = 1024  # of a window: a larger map is too fine to be seen, and takes memory with the square of its size


@dataclass(frozen=True)
class LookInput:
    """What is looked at: a text, or two texts, or a text and its translation; `window` is a part of a long text."""

    text: str
    pair: str | None = None
    target: str | None = None  # the text of the decoder; the model's own translation if None
    window: int = 0
    off: tuple[tuple[int, int], ...] = ()  # heads that are switched off, as (layer from 1, head from 0)
    skipped: tuple[int, ...] = ()  # layers that are switched off
    off_part: str = ""  # the part these belong to; the network's only one if empty

    @property
    def off_stack(self) -> dict[str, Any]:
        """The part as `Model.ablate` names it."""
        if self.off_part == "cross":
            return {"stack": "decoder", "cross": True}
        return {"stack": self.off_part or "main"}


@dataclass(frozen=True)
class ShownToken:
    """One token: as the vocabulary writes it, and the characters of the text it stands for."""

    token: str
    text: str
    id: int
    start: int = 0
    end: int = 0
    sequence: int | None = None  # 0 for the text, 1 for its pair, None for special tokens


@dataclass(frozen=True, eq=False)
class AttentionPart:
    """Attention of one kind: of the encoder, of the decoder, between the two, or a recurrent alignment."""

    name: str  # "encoder", "decoder", "cross" or "alignment"
    queries: tuple[ShownToken, ...]
    keys: tuple[ShownToken, ...]
    heads: int
    layers: Sequence[HeadInputs] = ()
    masks: tuple[tuple[int | None, int | None], ...] = ((None, None),)  # of each layer: how far to the left and right
    alignment_TS: Tensor | None = None  # recurrent networks compute one matrix of weights

    @property
    def depth(self) -> int:
        return 1 if self.alignment_TS is not None else len(self.layers)


@dataclass(frozen=True, eq=False)
class Reading:
    """A text as the network read it."""

    tokens: tuple[ShownToken, ...]
    parts: tuple[AttentionPart, ...]
    batch: Ragged
    windows: int = 1
    target: tuple[ShownToken, ...] = ()
    target_batch: Ragged | None = None
    written: str | None = None  # the translation, as text
    notices: tuple[str, ...] = field(default=())

    def part(self, name: str | None) -> AttentionPart:
        """The part of that name, the first if None."""
        if not self.parts:
            raise InputError("this model has no attention to show.")
        if name is None:
            return self.parts[0]
        for part in self.parts:
            if part.name == name:
                return part
        names = ", ".join(part.name for part in self.parts)
        raise InputError(f'this model has no part "{name}". It has: {names}.')

    @property
    def nbytes(self) -> int:
        return sum(layer.nbytes for part in self.parts for layer in part.layers)


def part_names(model: Model) -> tuple[str, ...]:
    """The kinds of attention that a model has; empty for networks without attention."""
    config = model.config
    if isinstance(config, RecurrentConfig):
        return ("alignment",) if config.score != "none" else ()
    if not isinstance(config, ModelConfig):
        return ()
    if config.kind == "encoder-decoder":
        return ("encoder", "decoder", "cross")
    return (config.kind,)


@contextmanager
def switched_off(model: Model, request: LookInput) -> Iterator[None]:
    """Run the network without the heads and layers that a request switches off."""
    if not request.off and not request.skipped:
        yield
        return
    with model.ablate(request.off, layers=request.skipped, **request.off_stack):
        yield


@torch.no_grad()
def read_text(model: Model, request: LookInput) -> Reading:
    """Run the network once on a text and record what every attention is computed from."""
    with switched_off(model, request):
        return _read(model, request)


def _read(model: Model, request: LookInput) -> Reading:
    if model.config.kind == "encoder-decoder":
        return _read_translation(model, request)
    tokenizer = model.require_tokenizer()
    encoding = tokenizer.encode(request.text, request.pair)
    check_encoding(encoding, "the text", model.config.vocabulary)
    tokens = shown_tokens(tokenizer, encoding, request.text, request.pair)
    positions = list(range(len(tokens)))
    windows = [positions]
    limit = min(model.config.max_tokens or MAX_TOKENS, MAX_TOKENS)
    if len(tokens) > limit:
        if request.pair is not None:
            raise InputError(
                f"the two texts have {len(tokens)} tokens together; at most {limit} are shown at once. "
                "Give shorter texts, or one text alone, which is shown in windows."
            )
        numbered = replace(encoding, ids=tuple(positions))
        windows = [list(window.ids) for window in split_into_windows(0, numbered, limit)]
    chosen = _window(windows, request.window)
    segments = [[encoding.segments[place] for place in chosen]] if model.config.segments > 1 else None
    batch = Ragged.of([[encoding.ids[place] for place in chosen]], segments=segments, device=model.device)
    shown = tuple(tokens[place] for place in chosen)
    return Reading(shown, _own_parts(model, batch, shown), batch, len(windows), notices=_notices(len(windows), request))


def _window(windows: Sequence[list[int]], number: int) -> list[int]:
    if not 0 <= number < len(windows):
        raise InputError(f"window {number} does not exist: this text has {pluralize(len(windows), 'window')}, from 0.")
    return windows[number]


def _notices(windows: int, request: LookInput) -> tuple[str, ...]:
    if windows == 1:
        return ()
    words = (
        f"This text is longer than the model's maximum, or than the {MAX_TOKENS:,} tokens that are shown at once. It "
        f"is shown in {windows} windows that overlap; this is window {request.window + 1}. Tokens of different windows "
        "do not attend to each other."
    )
    return (words,)


def _own_parts(model: Model, batch: Ragged, tokens: tuple[ShownToken, ...]) -> tuple[AttentionPart, ...]:
    network = model.network
    if not isinstance(network, Transformer):
        return ()
    name = "encoder" if network.encoder is not None else "decoder"
    layers = record_layers(network, name, batch)
    heads = network.config.attention.heads
    return (AttentionPart(name, tokens, tokens, heads, layers, layer_masks(network.main)),)


def _read_translation(model: Model, request: LookInput) -> Reading:
    tokenizer = model.require_tokenizer()
    preprocessing = model.preprocessing()
    window = min(preprocessing.window or MAX_TOKENS, model.config.max_tokens or MAX_TOKENS, MAX_TOKENS)
    preprocessing = replace(preprocessing, window=window)
    rows = Translate().examples([TranslateRecord(request.text, "")], preprocessing, labeled=False)
    sources = [rows.take([row]).tokens.ids.tolist() for row in range(len(rows))]
    source = _window(sources, request.window)
    start = model.writer.special.decoder_start
    assert start is not None
    written, target = _target_ids(model, request, source)
    batch = Ragged.of([source], device=model.device)
    target_batch = Ragged.of([[start, *target[:-1]]], device=model.device)
    output = tokenizer.output_tokenizer
    keys = _source_tokens(tokenizer, request.text, source)
    produced = tuple(shown_id(output, token) for token in target)
    inputs = tuple(shown_id(output, token) for token in (start, *target[:-1]))
    network = model.network
    parts: tuple[AttentionPart, ...] = ()
    if isinstance(network, RecurrentNetwork):
        if network.config.score != "none":
            weights_TS = network.alignment(batch, target_batch)[0].float()
            parts = (AttentionPart("alignment", produced, keys, 1, alignment_TS=weights_TS),)
    elif isinstance(network, Transformer):
        assert network.encoder is not None
        assert network.decoder is not None
        seen = record_translation(network, batch, target_batch)
        heads = network.config.attention.heads
        free = ((None, None),) * network.decoder.depth
        parts = (
            AttentionPart("cross", produced, keys, heads, seen["cross"], free),
            AttentionPart("encoder", keys, keys, heads, seen["encoder"], layer_masks(network.encoder)),
            AttentionPart("decoder", inputs, inputs, heads, seen["decoder"], layer_masks(network.decoder)),
        )
    return Reading(keys, parts, batch, len(sources), produced, target_batch, written, _notices(len(sources), request))


def _target_ids(model: Model, request: LookInput, source: list[int]) -> tuple[str, list[int]]:
    """The translation: the one that was given, else the model's own, without beams."""
    output = model.require_tokenizer().output_tokenizer
    if request.target is not None and request.target.strip():
        ids = list(output.encode(request.target).ids)
        check_encoding(output.encode(request.target), "the translation", model.config.output_vocabulary)
        return request.target, ids[:MAX_TARGET]
    limit = min(MAX_TARGET, model.config.max_tokens or MAX_TARGET, LONGER * len(source) + MORE)
    best = model.writer.continuations([source], {"max_tokens": limit, "beams": 1})[0][0]
    return best.text, list(best.ids) or [0]


def _source_tokens(tokenizer: Tokenizer, text: str, ids: list[int]) -> tuple[ShownToken, ...]:
    """The tokens of the source with their characters, where the ids are those of the whole text."""
    encoding = tokenizer.encode(text)
    if list(encoding.ids) == ids:
        return shown_tokens(tokenizer, encoding, text, None)
    return tuple(shown_id(tokenizer, token) for token in ids)


def shown_tokens(tokenizer: Tokenizer, encoding: Encoding, text: str, pair: str | None) -> tuple[ShownToken, ...]:
    """The tokens of an encoding, each with the characters it stands for."""
    texts = (text, pair or "")
    tokens = []
    for id, (start, end), sequence in zip(encoding.ids, encoding.offsets, encoding.sequence_ids, strict=True):
        name = tokenizer.backend.id_to_token(id) or ""
        characters = "" if sequence is None else texts[sequence][start:end]
        tokens.append(ShownToken(name, characters.strip() or characters or name, id, start, end, sequence))
    return tuple(tokens)


def shown_id(tokenizer: Tokenizer, id: int) -> ShownToken:
    """A token that was generated, not read from a text."""
    name = tokenizer.backend.id_to_token(id) or ""
    characters = tokenizer.backend.decode([id], skip_special_tokens=True).strip()
    is_text = bool(characters) and "\ufffd" not in characters  # a part of a letter has no characters of its own
    return ShownToken(name, characters if is_text else name, id, sequence=0 if characters else None)
