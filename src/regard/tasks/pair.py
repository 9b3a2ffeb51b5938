"""What holds between two texts: entailment, paraphrase, likeness. One label, several, or a number, as for one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.data.batching.framing import Frame, pair_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import PairRecord, Record
from regard.tasks.classify import Classify


@dataclass(frozen=True)
class Pair(Classify):
    """Long texts are read side by side, window by window; the answer is that of all windows together."""

    name: ClassVar[str] = "pair"
    title: ClassVar[str] = "text pair classifier"
    record: ClassVar[type[Any]] = PairRecord
    input_roles: ClassVar[tuple[str, ...]] = ("first", "second")
    example_call: ClassVar[str] = 'predict([("a text", "another")])'
    command_example: ClassVar[str] = '"a text" "another"'
    pair_task: ClassVar[str | None] = None
    probe: ClassVar[str] = "request"  # vectors of sentence encoders describe one text
    model_heads: ClassVar[tuple[str, ...]] = ()  # those of Classify: a head does not show that it is for pairs

    def sequences(
        self, records: Sequence[Record], preprocessing: Preprocessing
    ) -> Iterator[list[tuple[Sequence[int], Sequence[int] | None]]]:
        frame, pairs = (
            Frame.of(preprocessing.tokenizer),
            [record for record in records if isinstance(record, PairRecord)],
        )
        firsts = preprocessing.tokenizer.ids_batch([pair.first for pair in pairs], special=False)
        seconds = preprocessing.tokenizer.ids_batch([pair.second for pair in pairs], special=False)
        for first, second in zip(firsts, seconds, strict=True):
            cuts = pair_windows(
                frame, first, second, max_tokens=preprocessing.max_tokens, overlap=preprocessing.overlap
            )
            yield [(cut.ids, cut.segments) for cut in cuts]
