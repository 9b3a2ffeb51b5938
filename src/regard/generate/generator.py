"""Text generation with a network and its tokenizer: from prompts to continuations."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from regard.data.inputs import check_ids
from regard.errors import InputError
from regard.generate.decode import decode, prepare_job, stream_decode
from regard.generate.loop import DecodableNetwork, DecodingJob, Hypothesis
from regard.generate.settings import DecodingSettings, SpecialIds
from regard.generate.text import TextStream, token_sequences, truncate_at_stop
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Continuation:
    """A continuation of a prompt."""

    text: str
    ids: tuple[int, ...]  # new tokens; the last is the end token if `finish_reason` is "end"
    log_probs: tuple[float, ...]  # log-probability of each id, before any rule
    score: float  # sum of log_probs, or the score of beam search
    finish_reason: str  # "end" token, "stop" text, "length" (max_tokens), or "full" context


@dataclass(frozen=True, eq=False)
class TextGenerator:
    """The parts of a model that generation needs."""

    network: DecodableNetwork
    special: SpecialIds
    device: torch.device
    tokenizer: Tokenizer | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)  # settings of the model, used if not given
    fixed_shapes: bool = False  # step in fixed shapes, which a GPU records

    def ids(self, prompts: Sequence[Sequence[int]], settings: Mapping[str, Any]) -> list[list[int]]:
        """The new ids of each prompt."""
        return [results[0].ids for results in self._decode(self._checked(prompts, settings), settings)]

    def texts(self, prompts: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
        """The continuation of each prompt as text."""
        results = self._decode(self._read(prompts, settings), settings)
        return [
            self._text(rows[0], DecodingSettings.from_options(settings, defaults=self.defaults)) for rows in results
        ]

    def continuations(
        self,
        prompts: Sequence[str] | Sequence[Sequence[int]],
        settings: Mapping[str, Any],
        *,
        max_new_tokens: Sequence[int] | None = None,
    ) -> list[list[Continuation]]:
        """Continuations of each prompt with log-probabilities, the best first; `max_new_tokens` limits each prompt."""
        worded = any(isinstance(prompt, str) for prompt in prompts)
        rows = self._read(prompts, settings) if worded else self._checked(prompts, settings)
        chosen = DecodingSettings.from_options(settings, defaults=self.defaults)
        results = decode(replace(self._job(chosen, log_probs=True), max_new_tokens=max_new_tokens), rows)
        return [[self._continuation(row, chosen) for row in each] for each in results]

    def stream(self, prompt: str, settings: Mapping[str, Any]) -> Generator[str, None, Continuation]:
        """Parts of the text as soon as they are certain; returns the whole continuation.

        With several beams or samples the best one is known at the end: it is one part.
        """
        chosen = DecodingSettings.from_options(settings, defaults=self.defaults)
        if chosen.beams > 1 or chosen.best > 1:
            best = self.continuations([prompt], settings)[0][0]
            if best.text:
                yield best.text
            return best
        tokenizer = self._need_tokenizer()
        rows = self._read([prompt], settings)
        pieces = TextStream(tokenizer.output_tokenizer.decode_generated, chosen.stop)
        job = self._job(chosen, log_probs=True)
        row = Hypothesis(prompt=0, max_new_tokens=chosen.max_tokens)  # where the context is full already
        for row in stream_decode(job, rows[0]):
            if piece := pieces.add(row.ids):
                yield piece
        if piece := pieces.add(row.ids, last=True):
            yield piece
        return self._continuation(row, chosen)

    def _decode(self, rows: list[list[int]], settings: Mapping[str, Any]) -> list[list[Hypothesis]]:
        return decode(self._job(DecodingSettings.from_options(settings, defaults=self.defaults)), rows)

    def _job(self, settings: DecodingSettings, *, log_probs: bool = False) -> DecodingJob:
        worded = [name for name in ("stop", "banned", "forced") if _has_text(getattr(settings, name))]
        if worded and self.tokenizer is None:
            raise InputError(f"{worded[0]} contains text, but this model has no tokenizer. Give lists of ids.")
        ended, words = None, None if self.tokenizer is None else self.tokenizer.output_tokenizer
        if settings.stop:
            tokenizer, stops = self._need_tokenizer(), settings.stop

            def ended(ids: Sequence[int]) -> bool:
                text = tokenizer.output_tokenizer.decode_generated(ids)
                return any(stop in text for stop in stops)

        return prepare_job(
            self.network,
            settings,
            self.special,
            banned=token_sequences(settings.banned, words, every=True),
            forced=token_sequences(settings.forced, words, every=False),
            stop_check=ended,
            log_probs=log_probs,
            device=self.device,
            fixed_shapes=self.fixed_shapes,
        )

    def _continuation(self, row: Hypothesis, settings: DecodingSettings) -> Continuation:
        score = sum(row.log_probs) if row.score is None else row.score
        text = "" if self.tokenizer is None else self._text(row, settings)
        return Continuation(text, tuple(row.ids), tuple(row.log_probs), score, row.finish_reason or "length")

    def _text(self, row: Hypothesis, settings: DecodingSettings) -> str:
        return truncate_at_stop(self._need_tokenizer().output_tokenizer.decode_generated(row.ids), settings.stop)

    def _need_tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise InputError(
                "this model has no tokenizer (it was created from a preset), so it cannot read or write text. "
                "Give ids: generate_ids([[1, 2, 3]])."
            )
        return self.tokenizer

    def _checked(self, prompts: Any, settings: Mapping[str, Any]) -> list[list[int]]:
        config = self.network.config
        slide = DecodingSettings.from_options(settings, defaults=self.defaults).slide and config.kind == "decoder"
        return check_ids(
            prompts, "prompts", vocabulary=config.vocabulary, max_tokens=None if slide else config.max_tokens
        )

    def _read(self, prompts: Sequence[Any], settings: Mapping[str, Any]) -> list[list[int]]:
        """Prompts as ids, for a decoder without the special tokens that the tokenizer adds at the end."""
        tokenizer = self._need_tokenizer()
        if not prompts:
            raise InputError("the list of prompts is empty; give at least one.")
        for number, prompt in enumerate(prompts):
            if isinstance(prompt, str) and not prompt.strip():
                hint = (
                    "" if tokenizer.bos is None else f" To start without a prompt: generate_ids([[{tokenizer.bos}]])."
                )
                raise InputError(f"prompt {number} is empty. Give at least one word.{hint}")
        rows = [list(ids) for ids in tokenizer.ids_batch(prompts)]
        after = len(tokenizer.surrounding_ids[1])
        if self.network.config.kind == "decoder" and after:
            rows = [row[:-after] for row in rows]
        return self._checked(rows, settings)


def _has_text(words: Sequence[object]) -> bool:
    return any(isinstance(word, str) for word in words)
