"""Measure the lengths of rows in tokens, and find rows longer than the model's limit.

Up to MAX_ROWS rows or MAX_SAMPLE_CHARACTERS characters, every row is counted; then every second row, every fourth, and
so on. This sample is reproducible, and its cost hardly grows with the data.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.data.check.collect import FindingCollector, excerpt
from regard.data.check.finding import LengthStatistics
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.records import Place, TranslateRecord
from regard.text.tokenizer import Tokenizer

TokenCounter = Callable[
    [Sequence[str]], tuple[list[int], int]
]  # tokens of each text, and the number of unknown tokens in all texts
MAX_ROWS = 10_000  # in the sample
MAX_ROWS_OF_LONG_TEXTS = 2000  # in the sample, once it has MAX_SAMPLE_CHARACTERS
MAX_SAMPLE_CHARACTERS = 1 << 23
ROWS_AT_ONCE = 256
CHARACTERS_AT_ONCE = 1 << 20
MAX_CHARACTERS = 20_000  # of a text that are counted; the length of longer texts is extrapolated
WORD = re.compile(r"\w+|[^\w\s]")
TOKENS_PER_WORD = 1.3  # assumed if there is no tokenizer
BINS = 40
MAX_PLACES = 50  # of rows that are too long


def count_with_tokenizer(tokenizer: Tokenizer) -> TokenCounter:
    """A function that counts tokens with a tokenizer, without special tokens."""
    unknown = tokenizer.unk

    def count(texts: Sequence[str]) -> tuple[list[int], int]:
        encoded = tokenizer.ids_batch(texts, special=False)
        unknown_tokens = 0 if unknown is None else sum(ids.count(unknown) for ids in encoded)
        return [len(ids) for ids in encoded], unknown_tokens

    return count


def estimate_from_words(texts: Sequence[str]) -> tuple[list[int], int]:
    """Estimated tokens of each text: TOKENS_PER_WORD for each word and punctuation mark."""
    return [round(TOKENS_PER_WORD * len(WORD.findall(text))) for text in texts], 0


@dataclass(frozen=True, slots=True)
class _WaitingRow:
    """A row whose tokens are not yet counted."""

    place: Place
    split: str
    texts: tuple[str, ...]  # the beginning of each text
    scales: tuple[float, ...]  # length of each text relative to its beginning
    is_translation: bool  # True if its texts are separate sequences (source and target)


class LengthRule:
    """Counts the tokens of a sample of the rows."""

    def __init__(
        self,
        collector: FindingCollector,
        *,
        count_tokens: TokenCounter = estimate_from_words,
        special_tokens: int = 2,
        limit: int | None = None,
    ) -> None:
        self.collector = collector
        self.count_tokens = count_tokens
        self.special_tokens = special_tokens
        self.limit = limit
        self.rows = 0
        self.step = 1  # every step-th row is counted
        self.lengths = array("q")  # of each counted row: tokens of its longest sequence
        self.totals = array("q")  # of each counted row: tokens of all its sequences
        self.waiting: list[_WaitingRow] = []
        self.waiting_characters = 0
        self.counted_characters = 0
        self.tokens = 0
        self.unknown = 0
        self.too_long: list[tuple[_WaitingRow, int]] = []

    def check_row(self, row: CheckedRow) -> None:
        if self.rows % self.step == 0:
            texts = tuple(text[:MAX_CHARACTERS] for _, text in row.texts)
            scales = tuple(max(len(text) / MAX_CHARACTERS, 1.0) for _, text in row.texts)
            is_translation = isinstance(row.record, TranslateRecord)
            self.waiting.append(_WaitingRow(row.place, row.split, texts, scales, is_translation))
            self.waiting_characters += sum(map(len, texts))
        self.rows += 1
        if len(self.waiting) >= ROWS_AT_ONCE or self.waiting_characters >= CHARACTERS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        """Count the tokens of the waiting rows."""
        counts, unknown = self.count_tokens([text for row in self.waiting for text in row.texts])
        self.tokens += sum(counts)
        self.unknown += unknown
        start = 0
        for row in self.waiting:
            end = start + len(row.texts)
            self._add(row, [round(count * scale) for count, scale in zip(counts[start:end], row.scales, strict=True)])
            start = end
        self.counted_characters += self.waiting_characters
        self.waiting = []
        self.waiting_characters = 0
        self._thin_out()

    def _add(self, row: _WaitingRow, counts: list[int]) -> None:
        """Add a row with the tokens of each of its texts."""
        if row.is_translation:
            length = self.special_tokens + max(counts)
            total = sum(counts) + self.special_tokens * len(counts)
        else:
            length = self.special_tokens + sum(counts) + len(counts) - 1
            total = sum(counts) + self.special_tokens
        self.lengths.append(length)
        self.totals.append(total)
        if self.limit is not None and length > self.limit and len(self.too_long) < MAX_PLACES:
            self.too_long.append((replace(row, texts=(excerpt(row.texts[0]),)), length))

    def _thin_out(self) -> None:
        """Drop every second row of the sample until it is small enough."""
        while len(self.lengths) > (
            MAX_ROWS if self.counted_characters <= MAX_SAMPLE_CHARACTERS else MAX_ROWS_OF_LONG_TEXTS
        ):
            self.counted_characters //= 2
            self.lengths = self.lengths[::2]
            self.totals = self.totals[::2]
            self.step *= 2

    def finish(self) -> LengthStatistics | None:
        """Statistics of the lengths; adds findings for rows that are too long and for unknown tokens."""
        if self.waiting:
            self._flush()
        if not self.lengths:
            return None
        values = np.frombuffer(self.lengths, np.int64)
        mean_tokens = float(np.frombuffer(self.totals, np.int64).mean())
        fraction_over = 0.0 if self.limit is None else float((values > self.limit).mean())
        self._add_findings(fraction_over)
        bounds, counts = _histogram(values, self.limit)
        return LengthStatistics(
            unit="tokens"
            if self.count_tokens is not estimate_from_words
            else f"tokens, estimated as {TOKENS_PER_WORD} per word",
            rows=len(values),
            total_tokens=round(mean_tokens * self.rows),
            mean=round(float(values.mean()), 2),
            median=int(np.median(values)),
            p95=int(np.percentile(values, 95)),
            max_length=int(values.max()),
            limit=self.limit,
            fraction_over_limit=fraction_over,
            bounds=bounds,
            counts=counts,
        )

    def _add_findings(self, fraction_over: float) -> None:
        total = round(fraction_over * self.rows)
        for number, (row, length) in enumerate(self.too_long):
            message = f"{length:,} tokens; the model's limit is {self.limit:,}"
            rows = max(total - len(self.too_long), 0) + 1 if number == 0 else 1  # the first also counts the others
            self.collector.add("too-long", row.place, message, text=row.texts[0], split=row.split, count=rows)
        if self.unknown > 0.02 * self.tokens and self.unknown > 5:
            message = f"{self.unknown / self.tokens:.1%} of the tokens are unknown to the tokenizer"
            self.collector.add("unknown-tokens", Place("the data"), message)


def _histogram(values: np.ndarray, limit: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Edges and counts of bins of equal width that cover nearly all rows; the last bin includes longer rows."""
    upper = max(int(np.percentile(values, 99)), min(limit or 0, int(values.max())), 10)
    width = next(size for size in _round_numbers() if size * BINS >= upper)
    bounds = [width * number for number in range(upper // width + 2)]
    counts, _ = np.histogram(np.minimum(values, bounds[-1]), bounds)
    return tuple(bounds), tuple(counts.tolist())


def _round_numbers() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on."""
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10
