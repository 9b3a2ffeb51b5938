"""What holds between two texts: entailment, paraphrase, likeness. One label, several, or a number, as for one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.data.batching.framing import Frame, pair_windows
from regard.data.records import PairRecord, Record
from regard.tasks.classify import Classify
from regard.tasks.task import Reading


@dataclass(frozen=True)
class Pair(Classify):
    """Long texts are read side by side, window by window; the answer is that of all windows together."""

    name: ClassVar[str] = "pair"
    record: ClassVar[type[Any]] = PairRecord

    def sequences(
        self, records: Sequence[Record], reading: Reading
    ) -> Iterator[list[tuple[Sequence[int], Sequence[int] | None]]]:
        frame, pairs = Frame.of(reading.tokenizer), [record for record in records if isinstance(record, PairRecord)]
        firsts = reading.tokenizer.ids_batch([pair.first for pair in pairs], special=False)
        seconds = reading.tokenizer.ids_batch([pair.second for pair in pairs], special=False)
        for first, second in zip(firsts, seconds, strict=True):
            cuts = pair_windows(frame, first, second, longest=reading.longest, overlap=reading.overlap)
            yield [(cut.ids, cut.segments) for cut in cuts]
