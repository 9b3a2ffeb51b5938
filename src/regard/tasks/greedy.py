"""Greedy decoding with an encoder-decoder: always the most likely next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.generate.decode import decode
from regard.generate.loop import DecodableNetwork, DecodingJob
from regard.generate.settings import DecodingSettings, SpecialIds
from regard.ragged import Ragged


@dataclass(frozen=True)
class DecodedSequence:
    """The output of a decoder for a source, without start and end token."""

    ids: tuple[int, ...]
    score: float  # log-probability of all of it, or what beams were ranked by
    ended: bool

    @classmethod
    def of(cls, ids: Sequence[int], score: float, *, why: str | None) -> DecodedSequence:
        """From all new ids, and why decoding ended."""
        ended = why == "end"
        return cls(tuple(ids[:-1] if ended else ids), score, ended)


def greedy_decode(
    network: DecodableNetwork, source: Ragged, *, start: int, end: int, max_new_tokens: Sequence[int]
) -> list[DecodedSequence]:
    """One target per source, each up to its own `max_new_tokens`."""
    settings, ends = DecodingSettings(max_tokens=max(max_new_tokens)), SpecialIds(eos=(end,), decoder_start=start)
    job = DecodingJob(network, settings, ends, log_probs=True, device=source.ids.device, max_new_tokens=max_new_tokens)
    decoded = decode(job, [ids.tolist() for ids in source.split(source.ids)])
    return [DecodedSequence.of(row.ids, sum(row.log_probs), why=row.finish_reason) for (row,) in decoded]
