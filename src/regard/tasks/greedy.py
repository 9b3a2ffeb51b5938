"""What an encoder-decoder writes by itself: the likeliest next word, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.generate.decode import decode
from regard.generate.loop import DecodableNetwork, DecodingJob
from regard.generate.settings import DecodingSettings, SpecialIds
from regard.ragged import Ragged


@dataclass(frozen=True)
class DecodedSequence:
    """What a decoder wrote for a source: without the start token, and without the end token where it came to one."""

    ids: tuple[int, ...]
    score: float  # log-probability of all of it, or what beams were ranked by
    ended: bool

    @classmethod
    def of(cls, ids: Sequence[int], score: float, *, why: str | None) -> DecodedSequence:
        """From all new ids, and what ended them."""
        ended = why == "end"
        return cls(tuple(ids[:-1] if ended else ids), score, ended)


def greedy_decode(
    network: DecodableNetwork, source: Ragged, *, start: int, end: int, most: Sequence[int]
) -> list[DecodedSequence]:
    """One target a source, each as long as its own `most`."""
    settings, ends = DecodingSettings(max_tokens=max(most)), SpecialIds(eos=(end,), decoder_start=start)
    job = DecodingJob(network, settings, ends, log_probs=True, device=source.ids.device, max_new_tokens=most)
    found = decode(job, [ids.tolist() for ids in source.split(source.ids)])
    return [DecodedSequence.of(row.ids, sum(row.log_probs), why=row.finish_reason) for (row,) in found]
