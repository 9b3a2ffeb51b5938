"""How a sequence is continued: settings that are checked when made, and the ids a model starts and stops with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from regard.errors import InputError, did_you_mean, setting, shorten

Constraint = Callable[[int, list[int]], Sequence[int] | None]
"""(number of the prompt, its new ids so far) -> the ids that may come next; None where all may."""
Word = str | Sequence[int]


@dataclass(frozen=True)
class SpecialIds:
    """The ids a model starts and stops with."""

    eos: tuple[int, ...] = ()  # a sequence is over with any of them
    decoder_start: int | None = None  # what the decoder beside an encoder begins with
    forced_first: int | None = None  # always the first new token
    forced_last: int | None = None  # always the last where a sequence grows to its greatest length


@dataclass(frozen=True)
class DecodingSettings:
    """How to continue. Greedy unless a filter, `sample`, `beams`, `contrast` or `lookup` says otherwise."""

    max_tokens: int = 50  # new ones, at most
    min_tokens: int = 0  # new ones before the end may come
    beams: int = 1
    best: int = 1  # how many continuations of each prompt
    length_penalty: float = 1.0  # beams: sums of log-probabilities are divided by length to this power
    early_stop: bool | Literal["never"] = False  # beams: stop at as many ends as beams; never: only if none can win
    sample: bool = False  # draw, also without a filter
    temperature: float | None = None  # below 1 sharper, above 1 flatter
    top_k: int | None = None  # the k likeliest
    top_p: float | None = None  # the likeliest that make up this share
    min_p: float | None = None  # those with this share of the likeliest one's probability
    typical: float | None = None  # those nearest to the expected surprise that make up this share
    seed: int | Sequence[int] | None = None  # one for each prompt or one a prompt
    repetition_penalty: float = 1.0  # above 1: tokens that were seen become less likely
    no_repeat: int = 0  # no run of so many tokens comes twice
    contrast: float | None = None  # contrastive search: weight of unlikeness to what was said, among the `top_k`
    lookup: int = 0  # speculate so many tokens ahead, copied from earlier in the sequence
    stop: tuple[str, ...] = ()  # texts that end a sequence
    banned: tuple[Word, ...] = ()  # words, or runs of ids, that never come
    forced: tuple[Word, ...] = ()  # words, or runs of ids, that must come
    constraint: Constraint | None = None
    slide: bool = False  # forget the oldest tokens where the context is full, instead of ending there

    def __post_init__(self) -> None:
        for name in WORD_SETTINGS:
            object.__setattr__(self, name, _words(name, getattr(self, name)))
        self._check_ranges()
        self._check_together()

    def _check_ranges(self) -> None:
        for name in (*MINIMUMS, *RANGES):
            check_number(name, getattr(self, name))
        if self.early_stop not in (True, False, "never"):
            raise InputError(f'{setting("early_stop")} is {_shown(self.early_stop)}. Choose True, False or "never".')
        seeds = self.seed if isinstance(self.seed, Sequence) and not isinstance(self.seed, str) else [self.seed]
        if not all(seed is None or (type(seed) is int and -(2**63) <= seed < 2**63) for seed in seeds):
            raise InputError(
                f"{setting('seed')} is {_shown(self.seed)}, expected a whole number, or one for each prompt."
            )
        for name in ("beams", "best"):
            if getattr(self, name) * self.max_tokens > MAX_TOTAL_TOKENS:
                raise _against(self, name, "max_tokens", f"together at most {MAX_TOTAL_TOKENS:,}", fix="Lower one.")
        if self.contrast is not None and self.max_tokens > MAX_CONTRASTIVE_TOKENS:
            raise _against(
                self, "contrast", "max_tokens", f"it allows {MAX_CONTRASTIVE_TOKENS:,} tokens", fix="Lower it."
            )

    def _check_together(self) -> None:
        """Settings that contradict each other, both named."""
        if self.min_tokens > self.max_tokens:
            raise _against(self, "min_tokens", "max_tokens", "there can never be as many")
        ways = [name for name in ("beams", "contrast", "lookup") if self._is_set(name)]
        if self.contrast is None:
            ways += [name for name in FILTERS if self._is_set(name)][:1]
        else:
            ways += [name for name in FILTERS if name != "top_k" and self._is_set(name)][:1]
        if len(ways) > 1:
            raise _against(self, ways[0], ways[1], "they are two ways to choose the next token")
        if self.best > 1 and self.beams == 1 and not self.is_sampling:
            fix = f"Raise {setting('beams')}, or draw with {setting('temperature')}."
            raise _against(self, "best", "beams", "one beam finds one continuation", fix=fix)
        if 1 < self.beams < self.best:
            raise _against(self, "best", "beams", "there are no more continuations than beams")
        both = [word for word in self.forced if any(list(word) == list(other) for other in self.banned)]
        if both:
            names = f"{setting('forced')} and {setting('banned')}"
            raise InputError(f"{names} contradict each other: both hold {_shown(both[0])}. Take it out of one.")
        for name in ("beams", "contrast", "lookup"):
            if self.slide and self._is_set(name):
                raise _against(self, "slide", name, "only greedy decoding and sampling can slide")

    def _is_set(self, name: str) -> bool:
        return bool(getattr(self, name) != DEFAULTS[name])

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are drawn."""
        return self.contrast is None and any(self._is_set(name) for name in FILTERS)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, defaults: Mapping[str, Any] | None = None) -> DecodingSettings:
        """From names and values; `usual` holds those of the model, which give way to another way of choosing."""
        for name in options:
            if name not in DEFAULTS:
                raise InputError(f'"{name}" is not a setting of decoding.{did_you_mean(name, DEFAULTS)}')
        wanted = {name: value for name, value in options.items() if value is not None}
        kept = {name: value for name, value in (defaults or {}).items() if name not in wanted}
        for name in MINIMUMS:
            check_number(name, wanted.get(name))
            check_number(name, kept.get(name))
        if any(name in wanted for name in (*FILTERS, "contrast", "lookup")):
            kept = {name: value for name, value in kept.items() if name not in ("beams", *BEAM_ONLY)}
        if wanted.get("beams", 1) > 1 or "contrast" in wanted or "lookup" in wanted:
            kept = {name: value for name, value in kept.items() if name not in FILTERS}
        if kept.get("min_tokens", 0) > wanted.get("max_tokens", math.inf):
            kept["min_tokens"] = wanted["max_tokens"]
        if wanted.get("min_tokens", 0) > kept.get("max_tokens", math.inf):
            kept["max_tokens"] = wanted["min_tokens"]
        return cls(**{**kept, **wanted})


DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(DecodingSettings)}
FILTERS = ("sample", "temperature", "top_k", "top_p", "min_p", "typical")
BEAM_ONLY = ("length_penalty", "early_stop")
WORD_SETTINGS = ("stop", "banned", "forced")
MINIMUMS = {"max_tokens": 1, "min_tokens": 0, "beams": 1, "best": 1, "top_k": 1, "no_repeat": 0, "lookup": 0}
MAXIMUMS = {  # what a typing error or a damaged file may ask for, before anything of that size is allocated
    "max_tokens": 1_000_000,
    "min_tokens": 1_000_000,
    "beams": 1000,
    "best": 1000,
    "top_k": 1 << 30,
    "no_repeat": 1_000_000,
    "lookup": 1000,
}
MAX_TOTAL_TOKENS = 10_000_000  # tokens of all beams or continuations of a prompt
MAX_CONTRASTIVE_TOKENS = 100_000  # tokens of contrastive search, which keeps a vector of each
RANGES = {
    "temperature": (1e-4, 1e4),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "typical": (0.0, 1.0),
    "contrast": (0.0, 1.0),
    "repetition_penalty": (1e-4, 1e4),
    "length_penalty": (-20.0, 20.0),
}


def check_number(name: str, value: Any) -> None:
    """Refuse a number of another type or out of its range."""
    if value is None:
        return
    if name in MINIMUMS:
        if type(value) is not int or value < MINIMUMS[name]:
            raise InputError(
                f"{setting(name)} must be a whole number of at least {MINIMUMS[name]}, not {_shown(value)}."
            )
        if value > MAXIMUMS[name]:
            raise InputError(f"{setting(name)} must be at most {MAXIMUMS[name]:,}, not {_shown(value)}.")
    elif name in RANGES:
        least, most = RANGES[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and least <= value <= most and (value != 0 or least < 0)):
            raise InputError(f"{setting(name)} must be a number {_range(least, most)}, not {_shown(value)}.")


def _range(least: float, most: float) -> str:
    return f"above 0 and at most {most:g}" if least == 0 else f"from {least:g} to {most:g}"


def _shown(given: object) -> str:
    return shorten(repr(given), 60)


def _words(name: str, given: Any) -> tuple[Word, ...]:
    """Words, each a text or a list of ids, from one of them or several."""
    if given is None:
        return ()
    one = isinstance(given, str) or (isinstance(given, Sequence) and len(given) > 0 and type(given[0]) is int)
    words = (given,) if one else given
    if not isinstance(words, Sequence) or not all(_is_word(word) for word in words):
        raise InputError(f"{setting(name)} is {_shown(given)}, expected words: texts, or lists of ids.")
    if any(len(word) == 0 for word in words):
        raise InputError(f"{setting(name)} holds an empty word. Leave it out.")
    if name == "stop" and not all(isinstance(word, str) for word in words):
        raise InputError(f"{setting(name)} is {_shown(given)}, expected texts.")
    return tuple(words)


def _is_word(word: object) -> bool:
    return isinstance(word, str) or (isinstance(word, Sequence) and all(type(number) is int for number in word))


def _against(settings: DecodingSettings, one: str, other: str, why: str, *, fix: str = "Leave one out.") -> InputError:
    values = f"{setting(one, getattr(settings, one))} and {setting(other, getattr(settings, other))}"
    return InputError(f"{values} contradict each other: {why}. {fix}")
