"""What holds between two texts: entailment, paraphrase, likeness. One label, several, or a number, as for one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regard.data.batching.assembly import SequencePart, Sequences, assemble, cut_rows
from regard.data.batching.framing import Frame, pair_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.windows import Window
from regard.data.records import PairRecord, Record
from regard.tasks.classify import Classify
from regard.text.flat_tokens import FlatTokens
from regard.text.tokenizer import Tokenizer


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

    def sequences(self, records: Sequence[Record], preprocessing: Preprocessing) -> Sequences:
        pairs = [record for record in records if isinstance(record, PairRecord)]
        first, second = (
            distinct_tokens(preprocessing.tokenizer, texts)
            for texts in ([pair.first for pair in pairs], [pair.second for pair in pairs])
        )
        return pair_sequences(first, second, preprocessing)


def pair_sequences(first: FlatTokens, second: FlatTokens, preprocessing: Preprocessing) -> Sequences:
    """The windows of pairs: row i has the tokens of both texts i, between the special tokens of a pair."""
    frame, limit = Frame.of(preprocessing.tokenizer), preprocessing.max_tokens
    long = first.lengths[:0]
    if limit is not None:
        long = np.flatnonzero(first.lengths + second.lengths + frame.pair_special_count > limit)
    both = {row: _windows(frame, first, second, row, preprocessing) for row in long.tolist()}
    cuts, others = (
        cut_rows(tokens.lengths, long, lambda row, text=text: [pair[text] for pair in both[row]])  # type: ignore[misc]
        for text, tokens in enumerate((first, second))
    )
    before, between, after = (
        SequencePart.special(one, len(cuts.row)) for one in (frame.before, frame.between, frame.after)
    )
    left = SequencePart.text(first, cuts, segment=frame.segments[0])
    right = SequencePart.text(second, others, segment=frame.segments[1])
    return assemble(cuts.row, (before, left, between, right, after), segments=preprocessing.segments)


def _windows(
    frame: Frame, first: FlatTokens, second: FlatTokens, row: int, preprocessing: Preprocessing
) -> list[tuple[Window, Window]]:
    """The windows of both texts of a long pair."""
    texts = (range(int(tokens.lengths[row])) for tokens in (first, second))
    cuts = pair_windows(frame, *texts, max_tokens=preprocessing.max_tokens, overlap=preprocessing.overlap)
    return [(cut.parts[0].window, cut.parts[1].window) for cut in cuts]


def distinct_tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> FlatTokens:
    """The tokens of each text; equal texts, of which pairs have many, are tokenized once."""
    number = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    tokens = tokenizer.flat_batch(list(number))
    return tokens if len(number) == len(texts) else tokens.take(np.array([number[text] for text in texts], np.int64))
