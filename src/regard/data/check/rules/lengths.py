"""How long rows are in tokens, and how many are longer than the model.

Of up to SAMPLE rows, or HELD characters, every one is counted. Of more, every second is kept, then every fourth and
so on: a regular sample whose cost hardly grows, and which is the same in every run.
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

TokenCounter = Callable[[Sequence[str]], tuple[list[int], int]]  # tokens of each text, and how many of all are unknown
SAMPLE = 10_000
HELD = 1 << 23  # characters of the sample; where texts are long, fewer of them tell as much
LEAST = 2000
AT_ONCE = 256
CHARACTERS = 1 << 20  # counted at once
READ = 20_000  # characters of a text that are counted; of a longer one the rest is taken to be like them
WORD = re.compile(r"\w+|[^\w\s]")
PIECES = 1.3  # tokens a word, for want of a tokenizer
BINS = 40
KEPT = 50  # places of rows that are too long


def count_with_tokenizer(tokenizer: Tokenizer) -> TokenCounter:
    """Counts as a model does, special tokens left out."""
    unknown = tokenizer.unk

    def count(texts: Sequence[str]) -> tuple[list[int], int]:
        found = tokenizer.ids_batch(texts, special=False)
        missed = 0 if unknown is None else sum(ids.count(unknown) for ids in found)
        return [len(ids) for ids in found], missed

    return count


def estimate_from_words(texts: Sequence[str]) -> tuple[list[int], int]:
    """Words and signs, and somewhat more for words that are cut."""
    return [round(PIECES * len(WORD.findall(text))) for text in texts], 0


@dataclass(frozen=True, slots=True)
class _Waiting:
    place: Place
    split: str
    texts: tuple[str, ...]  # as much of each as is counted
    scales: tuple[float, ...]  # how much longer each is
    apart: bool  # whether its texts are sequences of their own: a source and its target


class LengthRule:
    """Counts the tokens of rows as they come."""

    def __init__(
        self,
        gather: FindingCollector,
        *,
        count: TokenCounter = estimate_from_words,
        frame: int = 2,
        limit: int | None = None,
    ) -> None:
        self.gather, self.count, self.frame, self.limit = gather, count, frame, limit
        self.every, self.rows = 1, 0
        self.longest, self.sums = array("q"), array("q")  # of each row: its longest sequence, all its tokens
        self.waiting: list[_Waiting] = []
        self.size, self.held, self.tokens, self.unknown = 0, 0, 0, 0
        self.over: list[tuple[_Waiting, int]] = []

    def check_row(self, row: CheckedRow) -> None:
        if self.rows % self.every == 0:
            texts = tuple(text[:READ] for _, text in row.texts)
            scales = tuple(max(len(text) / READ, 1.0) for _, text in row.texts)
            apart = isinstance(row.record, TranslateRecord)
            self.waiting.append(_Waiting(row.place, row.split, texts, scales, apart))
            self.size += sum(map(len, texts))
        self.rows += 1
        if len(self.waiting) >= AT_ONCE or self.size >= CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        counts, unknown = self.count([text for row in self.waiting for text in row.texts])
        self.tokens += sum(counts)
        self.unknown += unknown
        at = 0
        for row in self.waiting:
            own = [round(n * scale) for n, scale in zip(counts[at : at + len(row.texts)], row.scales, strict=True)]
            at += len(row.texts)
            longest = self.frame + max(own) if row.apart else self.frame + sum(own) + len(own) - 1
            self.longest.append(longest)
            self.sums.append(sum(own) + self.frame * (len(own) if row.apart else 1))
            if self.limit is not None and longest > self.limit and len(self.over) < KEPT:
                self.over.append((replace(row, texts=(excerpt(row.texts[0]),)), longest))
        self.held += self.size
        self.waiting, self.size = [], 0
        while len(self.longest) > (SAMPLE if self.held <= HELD else LEAST):
            self.held //= 2
            self.longest, self.sums, self.every = self.longest[::2], self.sums[::2], 2 * self.every

    def finish(self) -> LengthStatistics | None:
        """The distribution, with findings where texts are too long or not known to the tokenizer."""
        if self.waiting:
            self._flush()
        if not self.longest:
            return None
        values, sums = np.frombuffer(self.longest, np.int64), np.frombuffer(self.sums, np.int64)
        over = 0.0 if self.limit is None else float((values > self.limit).mean())
        self._findings(over)
        bounds, counts = _histogram(values, self.limit)
        return LengthStatistics(
            unit="tokens" if self.count is not estimate_from_words else f"tokens, taken to be {PIECES} a word",
            rows=len(values),
            total_tokens=round(float(sums.mean()) * self.rows),
            mean=round(float(values.mean()), 2),
            median=int(np.median(values)),
            p95=int(np.percentile(values, 95)),
            max_length=int(values.max()),
            limit=self.limit,
            fraction_over_limit=over,
            bounds=bounds,
            counts=counts,
        )

    def _findings(self, over: float) -> None:
        for number, (row, longest) in enumerate(self.over):
            what = f"{longest:,} tokens, where the model has places for {self.limit:,}"
            rest = max(round(over * self.rows) - len(self.over), 0) + 1 if number == 0 else 1
            self.gather.add("too-long", row.place, what, text=row.texts[0], split=row.split, count=rest)
        if self.unknown > 0.02 * self.tokens and self.unknown > 5:
            what = f"{self.unknown / self.tokens:.1%} of the tokens are unknown to the tokenizer"
            self.gather.add("unknown-tokens", Place("the data"), what)


def _histogram(values: np.ndarray, limit: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Counts in bins of equal width up to where nearly all rows are; the last takes in the rest."""
    far = max(int(np.percentile(values, 99)), min(limit or 0, int(values.max())), 10)
    width = next(size for size in _round() if size * BINS >= far)
    bounds = [width * place for place in range(far // width + 2)]
    counts, _ = np.histogram(np.minimum(values, bounds[-1]), bounds)
    return tuple(bounds), tuple(counts.tolist())


def _round() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on: widths that are easy to read."""
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10
