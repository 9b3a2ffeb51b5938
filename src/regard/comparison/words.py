"""Verdicts in words."""

from __future__ import annotations

from regard.errors import pluralize
from regard.metrics.confidence import Score

PERCENT = 100.0
IN_POINTS = ("bleu", "chrf", "bleu_lowercase")  # scores from 0 to 100
RAW = (
    *("perplexity", "nll", "mse", "mae", "word_perplexity", "bits_per_character"),
    *("perplexity_ahead", "perplexity_back"),
)  # scores without an upper limit


def points(metric: str, value: float, *, digits: int = 1) -> str:
    """A difference of scores: in points if the score has a scale, such as "2.1 points"; else as it is."""
    if metric in RAW:
        return f"{value:.4g}"
    return f"{number(metric, value, digits=digits)} points"


def number(metric: str, value: float, *, digits: int = 1) -> str:
    """A score as people write it: 91.2 for an accuracy of 0.912."""
    if metric in RAW:
        return f"{value:.4g}"
    shown = round(value if metric in IN_POINTS else PERCENT * value, digits)
    return f"{shown + 0.0:.{digits}f}"  # + 0.0 turns -0.0 into 0.0


def highest(metric: str) -> float | None:
    """The highest value that a score can have; None without a limit."""
    if metric in RAW:
        return None
    return 100.0 if metric in IN_POINTS else 1.0


def is_close(metric: str, value: float, best: float) -> bool:
    """Whether a score is within 1 point of the best; within 1 % for scores without a scale."""
    gap = abs(value - best)
    if metric in RAW:
        return gap <= 0.01 * abs(best)
    return gap <= (1.0 if metric in IN_POINTS else 0.01) + 1e-9


def better_sentence(better: str, worse: str, metric: str, difference: Score) -> str:
    """Such as "minilm beats ngram by 2.1 points (1.3 to 2.9)"."""
    size, interval = _size(metric, difference)
    return f"{better} beats {worse} by {size} ({interval})"


def _size(metric: str, difference: Score) -> tuple[str, str]:
    """A difference without its sign, and its interval."""
    low, high = sorted((abs(difference.low), abs(difference.high)))
    digits = 1 if number(metric, low) != number(metric, high) else 2
    interval = f"{number(metric, low, digits=digits)} to {number(metric, high, digits=digits)}"
    return points(metric, abs(difference.value), digits=digits), interval


def too_many_pairs_sentence(first: str, second: str, metric: str, difference: Score, pairs: int, p_holm: float) -> str:
    """For a difference whose interval excludes 0, but not surely enough for the number of pairs that are tested."""
    size, interval = _size(metric, difference)
    return (
        f"{first} and {second} cannot be told apart when {pairs} pairs are tested at once: {size} ({interval}), "
        f"p {p_holm:.2g} after the correction; more seeds or fewer models would help"
    )


def cannot_tell_sentence(
    first: str, second: str, rows: int, rows_needed: int | None, *, are_equal: bool = False
) -> str:
    """Such as "a and b cannot be told apart with 500 rows: about 1,900 would be needed"."""
    start = f"{first} and {second} cannot be told apart with {pluralize(rows, 'row')}"
    if rows_needed is None:
        reason = "their scores are equal" if are_equal else "more rows would not help, since seeds differ as much"
        return f"{start}: {reason}"
    if rows_needed <= rows:
        return f"{start}, although a difference of this size is often shown with as many"
    return f"{start}: about {rounded(rows_needed):,} would be needed"


def rounded(value: int) -> int:
    """Two digits: more would say more than is known."""
    size = int(10 ** max(len(str(value)) - 2, 0))
    return round(value / size) * size


def listing(names: list[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
