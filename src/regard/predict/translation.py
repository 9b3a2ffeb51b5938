"""Translations of texts, and their alignments: how much each target token attends to each source token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from regard.data.batching.examples import Inputs
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.sequences import token_batches
from regard.data.inputs import check_texts
from regard.data.records import TranslateRecord
from regard.generate.generator import Continuation, TextGenerator
from regard.model import hooks as taps
from regard.model.network import Network
from regard.model.ngram_language import NgramNetwork
from regard.model.recurrent.networks import RecurrentNetwork
from regard.ragged import Ragged
from regard.tasks.greedy import DecodedSequence
from regard.tasks.inference import RunNetwork
from regard.tasks.translate import Translate, TranslationOutput

if TYPE_CHECKING:
    from regard.predict.model import Model

WORD_STARTS = ("▁", "Ġ")  # first character of a token that starts a word: Unigram, byte-level BPE
CONTINUES = "##"  # first characters of a token that continues a word: WordPiece
SPECIAL = ("<", "[")  # first characters of special tokens

Window = tuple[list[int], list[Continuation]]  # ids of the source, and its translations


@dataclass(frozen=True)
class Alignment:
    """How much each token of a translation attends to each token of its source; every row adds up to 1."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]  # (target, source)

    def by_word(self) -> Alignment:
        """The alignment of words: the mean over the tokens of a target word, the sum over those of a source word."""
        rows, columns = _group_by_word(self.target), _group_by_word(self.source)
        weights = tuple(
            tuple(sum(self.weights[t][s] for t in row for s in column) / len(row) for column in columns) for row in rows
        )
        return Alignment(_join_tokens(self.source, columns), _join_tokens(self.target, rows), weights)


@dataclass(frozen=True)
class Translated:
    """One translation of a text; a long text is translated in windows, and each has its alignment."""

    translation: str
    score: float  # log-probability, or the score that beams are ranked by
    truncated: bool = False  # always False: long texts are translated in windows
    windows: int = 1
    alignments: tuple[Alignment, ...] = ()

    @property
    def text(self) -> str:
        """The same as `translation`."""
        return self.translation

    def json(self) -> dict[str, Any]:
        """The fields as a plain dict; `alignments` only if they were requested."""
        values = asdict(self)
        if not self.alignments:
            del values["alignments"]
        return values


def translations(
    network: Network,
    generator: TextGenerator,
    preprocessing: Preprocessing,
    texts: Sequence[str],
    *,
    best: int,
    alignment: bool,
    batch_tokens: int,
    settings: Mapping[str, Any],
) -> list[list[Translated]]:
    """The best translations of each text, best first; `batch_tokens` source tokens are translated together."""
    texts = check_texts(texts)
    rows = Translate().examples([TranslateRecord(text, "") for text in texts], preprocessing, labeled=False)
    sources = [rows.take([row]).tokens.ids.tolist() for row in range(len(rows))]
    translated: list[list[Continuation]] = [[] for _ in sources]
    lengths = [len(source) for source in sources]
    for batch in token_batches(lengths, max(batch_tokens, max(lengths))):
        limits = None
        options = {**settings, "best": best}
        if settings.get("max_tokens") is None:
            limits = rows.by_sequence["max_new_tokens"][batch].clip(min=1).tolist()
            options["max_tokens"] = max(limits)
        continuations = generator.continuations([sources[row] for row in batch], options, max_new_tokens=limits)
        for row, candidates in zip(batch, continuations, strict=True):
            translated[row] = candidates
    windows: list[list[Window]] = [[] for _ in texts]
    for row, text in enumerate(rows.owners.tolist()):
        windows[text].append((sources[row], translated[row]))
    return [_join_windows(network, generator, parts, alignment=alignment) for parts in windows]


def _group_by_word(tokens: Sequence[str]) -> list[list[int]]:
    """The indices of the tokens of each word, by the markers at the beginning of tokens."""
    mark = next((mark for mark in WORD_STARTS if any(token.startswith(mark) for token in tokens)), None)
    words: list[list[int]] = []
    for index, token in enumerate(tokens):
        continues = token.startswith(CONTINUES) if mark is None else not token.startswith((mark, *SPECIAL))
        if continues and words and not tokens[index - 1].startswith(SPECIAL):
            words[-1].append(index)
        else:
            words.append([index])
    return words


def _join_tokens(tokens: Sequence[str], words: Sequence[Sequence[int]]) -> tuple[str, ...]:
    plain = [token.removeprefix(CONTINUES).lstrip("".join(WORD_STARTS)) for token in tokens]
    return tuple("".join(plain[index] for index in word) for word in words)


def translation_run(model: Model, task: Translate, options: Mapping[str, Any]) -> tuple[RunNetwork, int]:
    """Runs the network for a task with `beams` and `length_penalty`, and the number of beams.

    Those of the model's generation_config.json are used where none are given, as `translate` does.
    """
    beams = options.get("beams")
    if beams is None:
        beams = int(model.writer.defaults.get("beams", 1))
    if beams == 1:
        return model.task_runner(task), 1
    return beam_run(model.inference_network, model.writer, task, {**options, "beams": beams}), beams


def beam_run(network: Network, generator: TextGenerator, task: Translate, options: Mapping[str, Any]) -> RunNetwork:
    """Runs the network for a task, with beam search instead of greedy decoding; `options` are those of decoding."""

    def run(inputs: Inputs) -> TranslationOutput:
        sources = [ids.tolist() for ids in inputs.tokens.split(inputs.tokens.ids)]
        limits = inputs["max_new_tokens"].clamp(min=1).tolist()
        candidates = generator.continuations(sources, {**options, "max_tokens": max(limits)}, max_new_tokens=limits)
        decoded = [DecodedSequence.of(best.ids, best.score, why=best.finish_reason) for best, *_ in candidates]
        return task.with_written(network, inputs, decoded)

    return run


def _join_windows(
    network: Network, generator: TextGenerator, windows: Sequence[Window], *, alignment: bool
) -> list[Translated]:
    """The n-th best translation of every window, joined to the n-th best of the text."""
    joined = []
    for rank in range(min(len(candidates) for _, candidates in windows)):
        parts = [candidates[rank] for _, candidates in windows]
        alignments = []
        if alignment:
            alignments = [align(network, generator, source, candidates[rank].ids) for source, candidates in windows]
        text = " ".join(part.text.strip() for part in parts)
        score = sum(part.score for part in parts)
        joined.append(Translated(text, score, windows=len(parts), alignments=tuple(alignments)))
    return joined


@torch.inference_mode()
def align(network: Network, generator: TextGenerator, source: Sequence[int], target: Sequence[int]) -> Alignment:
    """The alignment of a translation: in a Transformer the cross-attention of the last layer, averaged over heads."""
    tokenizer = generator.tokenizer
    start = generator.special.decoder_start
    assert start is not None
    assert tokenizer is not None
    assert network.decoder is not None
    source_batch = Ragged.of([source], device=generator.device)
    target_batch = Ragged.of([[start, *target[:-1]]], device=generator.device)
    if isinstance(network, RecurrentNetwork):
        weights_TS = network.alignment(source_batch, target_batch)[0]
    else:
        assert not isinstance(network, NgramNetwork)
        last = network.main.depth - 1
        weights = taps.attention(network, source_batch, target=target_batch, layers=[last], stack="decoder", cross=True)
        weights_TS = weights[last][0].mean(0)
    source_tokens = tuple(tokenizer.backend.id_to_token(token) or "" for token in source)
    target_tokens = tuple(tokenizer.output_tokenizer.backend.id_to_token(token) or "" for token in target)
    return Alignment(source_tokens, target_tokens, tuple(tuple(row) for row in weights_TS.float().tolist()))
