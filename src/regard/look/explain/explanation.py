"""The result of an explanation: a score for every token and word of a text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any, NamedTuple

GREEN, RED = "46,160,67", "218,54,51"


class WordScore(NamedTuple):
    """A word with its contribution. `sequence` is 0 for the text, 1 for the second one."""

    text: str
    sequence: int
    start: int  # character offsets in its text
    end: int
    score: float
    tokens: tuple[int, ...]  # numbers of its tokens


@dataclass(frozen=True)
class TextFaithfulness:
    """How faithful an explanation is on one text: see `regard.look.faithfulness`.

    comprehensiveness: mean drop of the probability when the most important words are erased; higher is better.
    sufficiency: mean drop when only the most important words are left; lower is better.
    random: both for words in random order, the mean of several orders.
    normalized: the comprehensiveness between the worst (0) and the best order (1) of words that a search finds; None
        if it was not searched, or all orders are equal.
    """

    comprehensiveness: float
    sufficiency: float
    random_comprehensiveness: float
    random_sufficiency: float
    normalized: float | None = None


@dataclass(frozen=True)
class ExplainedTarget:
    """What was explained.

    kind: class, number, tag, span, translated word, next word, masked word, similarity or norm.
    label: the class, tag, answer or word.
    description: a sentence part such as 'the class "good"'.
    positions: the tokens it is predicted at, where it is predicted at tokens.
    """

    kind: str
    label: str
    description: str
    positions: tuple[int, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """How much each token and word of a text contributed to an answer. Positive scores speak for it.

    Of an additive method (`baseline_value` is not None), the scores add up to `value` minus `baseline_value`, up to
    `delta`. `bias` is the part of the value that belongs to no token, in a decomposition.
    """

    method: str
    target: ExplainedTarget
    text: str
    pair: str | None  # the second text; for a translation the words translated so far
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]  # characters of each token in its text; (0, 0) for special tokens
    sequence_ids: tuple[int | None, ...]  # 0 for the text, 1 for the second; None for special tokens
    token_scores: tuple[float, ...]
    words: tuple[WordScore, ...]
    value: float  # what was explained: a logit, a number, a similarity
    probability: float | None  # of the class, tag, answer or word; None for numbers, similarities and norms
    baseline_value: float | None  # the value with every word erased, for methods that are relative to it
    bias: float | None
    delta: float | None  # what the scores do not account for
    signed: bool  # whether negative scores speak against the answer; attention weights have no sign
    erased_by: str  # how words are erased: "mask" token, or "removal"
    windows: int = 1
    faithfulness: TextFaithfulness | None = None
    note: str | None = None  # what limits this explanation

    def top_words(self, count: int = 5) -> list[WordScore]:
        """The words with the highest scores."""
        return sorted(self.words, key=lambda word: -word.score)[:count]

    def json(self) -> dict[str, Any]:
        """The explanation as a plain dict."""
        values: dict[str, Any] = asdict(self)
        values["words"] = [word._asdict() for word in self.words]
        return values

    def _repr_html_(self) -> str:
        """The text in a notebook, colored as in a terminal; a word's score is shown under the pointer."""
        texts = [self.text] if self.pair is None else [self.text, self.pair]
        largest = max((abs(word.score) for word in self.words), default=0.0) or 1.0
        title = f"<strong>{escape(self.target.description)}</strong> ({escape(self.method)})"
        lines = [f"<p>{self._colored(number, text, largest)}</p>" for number, text in enumerate(texts)]
        return f"<div><p>{title}</p>{''.join(lines)}</div>"

    def _colored(self, sequence: int, text: str, largest: float) -> str:
        """HTML of one text: green words speak for the answer, red words against it."""
        parts, end = [], 0
        for word in (word for word in self.words if word.sequence == sequence):
            color = GREEN if word.score >= 0 else RED
            style = f"background:rgba({color},{abs(word.score) / largest:.2f});border-radius:3px"
            shown = escape(text[word.start : word.end])
            parts += [escape(text[end : word.start]), f'<span style="{style}" title="{word.score:+.4f}">{shown}</span>']
            end = word.end
        return "".join([*parts, escape(text[end:])])
