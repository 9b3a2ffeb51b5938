"""Texts translated: the best few of each, and which words of the source the words of the translation look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from regard.data.batching.examples import Inputs
from regard.data.batching.sequences import token_batches
from regard.data.inputs import check_texts
from regard.data.records import TranslateRecord
from regard.errors import InputError
from regard.generate.generator import Continuation
from regard.model import hooks as taps
from regard.model.recurrent.networks import RecurrentNetwork
from regard.ragged import Ragged
from regard.tasks.greedy import DecodedSequence
from regard.tasks.inference import RunNetwork
from regard.tasks.translate import Translate, TranslationOutput

if TYPE_CHECKING:
    from regard.predict.model import Model

STARTS = ("▁", "Ġ")  # of a word: Unigram, byte-level pairs
GOES_ON = "##"  # WordPiece
SPECIAL = ("<", "[")  # tokens that stand alone


@dataclass(frozen=True)
class Alignment:
    """How much each token of a translation looks at each token of its source; every row adds up to 1."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]  # (target, source)

    def by_word(self) -> Alignment:
        """Pieces joined to words: a word looks as its pieces do on average, at all pieces of another."""
        rows, columns = _words(self.target), _words(self.source)
        weights = tuple(
            tuple(sum(self.weights[t][s] for t in row for s in column) / len(row) for column in columns) for row in rows
        )
        return Alignment(_joined_words(self.source, columns), _joined_words(self.target, rows), weights)


@dataclass(frozen=True)
class Translated:
    """One translation of a text; a long text is translated in windows, and each has its alignment."""

    translation: str
    score: float  # log-probability, or what beams were ranked by
    truncated: bool = False  # never: long texts are translated in windows
    windows: int = 1
    alignments: tuple[Alignment, ...] = ()

    @property
    def text(self) -> str:
        """The same as `translation`."""
        return self.translation

    def json(self) -> dict[str, Any]:
        """The fields as a plain dict; `alignments` only where they were asked for."""
        found = asdict(self)
        return found if self.alignments else {name: value for name, value in found.items() if name != "alignments"}


def translations(
    model: Model,
    texts: Sequence[str],
    *,
    best: int,
    alignment: bool,
    tokens: int,
    prefix: str | None,
    settings: Mapping[str, Any],
) -> list[list[Translated]]:
    """The best translations of each text, the best first, so many `tokens` of texts at once."""
    if model.config.kind != "encoder-decoder":
        raise InputError(f"this {model.family} model is of kind {model.config.kind}; only encoder-decoders translate.")
    texts, preprocessing = check_texts(texts), model.preprocessing(prefix=prefix)
    rows = Translate().examples([TranslateRecord(text, "") for text in texts], preprocessing, labelled=False)
    sources = [rows.take([row]).tokens.ids.tolist() for row in range(len(rows))]
    found: list[list[Continuation]] = [[] for _ in sources]
    for part in token_batches([len(source) for source in sources], max(tokens, max(map(len, sources)))):
        given = [sources[row] for row in part]
        own = settings.get("max_tokens") is None
        rooms = rows.by_sequence["most"][part].clip(min=1).tolist() if own else None
        told = {**settings, "best": best, **({"max_tokens": max(rooms)} if rooms else {})}
        said = model.writer.continuations(given, told, max_new_tokens=rooms)
        for row, continuations in zip(part, said, strict=True):
            found[row] = continuations
    owners = rows.owners.tolist()
    windows = [[row for row, owner in enumerate(owners) if owner == text] for text in range(len(texts))]
    return [_joined(model, [(sources[row], found[row]) for row in held], alignment=alignment) for held in windows]


def _words(pieces: Sequence[str]) -> list[list[int]]:
    """Which pieces make up each word, by the marks that pieces carry at the start of a word, or where one goes on."""
    mark = next((mark for mark in STARTS if any(piece.startswith(mark) for piece in pieces)), None)
    words: list[list[int]] = []
    for place, piece in enumerate(pieces):
        inside = piece.startswith(GOES_ON) if mark is None else not piece.startswith((mark, *SPECIAL))
        if inside and words and not pieces[place - 1].startswith(SPECIAL):
            words[-1].append(place)
        else:
            words.append([place])
    return words


def _joined_words(pieces: Sequence[str], words: Sequence[Sequence[int]]) -> tuple[str, ...]:
    plain = [piece.removeprefix(GOES_ON).lstrip("".join(STARTS)) for piece in pieces]
    return tuple("".join(plain[place] for place in word) for word in words)


def beam_run(model: Model, task: Translate, beams: int) -> RunNetwork:
    """The network as the task reads it, but that translations are searched for with so many beams."""

    def run(inputs: Inputs) -> TranslationOutput:
        sources = [ids.tolist() for ids in inputs.tokens.split(inputs.tokens.ids)]
        rooms = inputs["most"].clamp(min=1).tolist()
        said = model.writer.continuations(sources, {"beams": beams, "max_tokens": max(rooms)}, max_new_tokens=rooms)
        written = [DecodedSequence.of(best.ids, best.score, why=best.finish_reason) for best, *_ in said]
        return task.with_written(model.network, inputs, written)

    return run


def _joined(
    model: Model, windows: Sequence[tuple[list[int], list[Continuation]]], *, alignment: bool
) -> list[Translated]:
    """The n-th best of every window as the n-th best of the text."""
    made = []
    for rank in range(min(len(said) for _, said in windows)):
        parts = [said[rank] for _, said in windows]
        seen = [align(model, source, said[rank].ids) for source, said in windows] if alignment else []
        text = " ".join(part.text.strip() for part in parts)
        score = sum(part.score for part in parts)
        made.append(Translated(text, score, windows=len(parts), alignments=tuple(seen)))
    return made


@torch.inference_mode()
def align(model: Model, source: Sequence[int], written: Sequence[int]) -> Alignment:
    """Of a Transformer the attention of the last layer to its source, the mean of its heads."""
    start, words = model.writer.special.decoder_start, model.tokenizer
    assert start is not None
    assert words is not None
    batch = Ragged.of([source], device=model.device)
    target = Ragged.of([[start, *written[:-1]]], device=model.device)
    network = model.network
    assert network.decoder is not None
    if isinstance(network, RecurrentNetwork):
        weights_TS = network.alignment(batch, target)[0]
    else:
        last = network.main.depth - 1
        seen = taps.attention(network, batch, target=target, layers=[last], stack="decoder", cross=True)
        weights_TS = seen[last][0].mean(0)
    read = tuple(words.backend.id_to_token(token) or "" for token in source)
    said = tuple(words.output_tokenizer.backend.id_to_token(token) or "" for token in written)
    return Alignment(read, said, tuple(tuple(row) for row in weights_TS.float().tolist()))
