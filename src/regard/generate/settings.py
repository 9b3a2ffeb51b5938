"""Settings of decoding, checked when created, and the special ids of a model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from regard.errors import InputError, did_you_mean, setting, shorten

Constraint = Callable[[int, list[int]], Sequence[int] | None]
"""(number of the prompt, its new ids so far) -> ids that may come next; None allows all."""
Word = str | Sequence[int]


@dataclass(frozen=True)
class SpecialIds:
    """Special ids that start and end generated sequences."""

    eos: tuple[int, ...] = ()  # any of them ends a sequence
    decoder_start: int | None = None  # first input of the decoder of an encoder-decoder
    forced_first: int | None = None  # forced as the first new token
    forced_last: int | None = None  # forced as the last token of a sequence that reaches the length limit


@dataclass(frozen=True)
class DecodingSettings:
    """How to continue a prompt: greedy, unless a filter, `sample` or `beams` is set."""

    max_tokens: int = 50  # maximum number of new tokens
    min_tokens: int = 0  # minimum number of new tokens before the end token
    beams: int = 1
    best: int = 1  # number of continuations per prompt
    length_penalty: float = 1.0  # beam search: log-probability is divided by length ** this
    early_stop: bool | Literal["never"] = (
        False  # beam search: stop at `beams` ended sequences; "never": only if no beam can win
    )
    sample: bool = False  # sample even without a filter
    temperature: float | None = None  # divides the logits: below 1 is sharper, above 1 flatter
    top_k: int | None = None  # keep the k most likely tokens
    top_p: float | None = None  # keep the most likely tokens whose probabilities sum to this
    min_p: float | None = None  # keep tokens with this fraction of the highest probability
    seed: int | Sequence[int] | None = None  # random seed, one for all prompts or one per prompt
    repetition_penalty: float = 1.0  # above 1: tokens that occurred become less likely
    no_repeat: int = 0  # n-grams of this size occur at most once; 0 disables it
    stop: tuple[str, ...] = ()  # texts that end a sequence
    banned: tuple[Word, ...] = ()  # words, or lists of ids, that never occur
    forced: tuple[Word, ...] = ()  # words, or lists of ids, that must occur
    constraint: Constraint | None = None
    slide: bool = False  # drop the oldest tokens when the context is full, instead of ending

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

    def _check_together(self) -> None:
        """Raise an error for settings that contradict each other."""
        if self.min_tokens > self.max_tokens:
            raise _against(self, "min_tokens", "max_tokens", "the minimum is above the maximum")
        filters = [name for name in FILTERS if self._is_set(name)]
        if self.beams > 1 and filters:
            raise _against(self, "beams", filters[0], "they are different decoding methods")
        if self.best > 1 and self.beams == 1 and not self.is_sampling:
            fix = f"Raise {setting('beams')}, or sample with {setting('temperature')}."
            raise _against(self, "best", "beams", "one beam gives one continuation", fix=fix)
        if 1 < self.beams < self.best:
            raise _against(self, "best", "beams", "there cannot be more continuations than beams")
        both = [word for word in self.forced if any(list(word) == list(second) for second in self.banned)]
        if both:
            names = f"{setting('forced')} and {setting('banned')}"
            raise InputError(f"{names} contradict each other: both contain {_shown(both[0])}. Remove it from one.")
        if self.slide and self.beams > 1:
            raise _against(self, "slide", "beams", "only greedy decoding and sampling can slide")

    def _is_set(self, name: str) -> bool:
        return bool(getattr(self, name) != DEFAULTS[name])

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are sampled."""
        return any(self._is_set(name) for name in FILTERS)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, defaults: Mapping[str, Any] | None = None) -> DecodingSettings:
        """From names and values. `defaults` are those of the model; those of another decoding method are ignored."""
        for name in options:
            if name not in DEFAULTS:
                raise InputError(f'"{name}" is not a decoding setting.{did_you_mean(name, DEFAULTS)}')
        chosen = {name: value for name, value in options.items() if value is not None}
        from_defaults = {name: value for name, value in (defaults or {}).items() if name not in chosen}
        for name in MINIMUMS:
            check_number(name, chosen.get(name))
            check_number(name, from_defaults.get(name))
        if any(name in chosen for name in FILTERS):
            from_defaults = {name: value for name, value in from_defaults.items() if name not in ("beams", *BEAM_ONLY)}
        if chosen.get("beams", 1) > 1:
            from_defaults = {name: value for name, value in from_defaults.items() if name not in FILTERS}
        if from_defaults.get("min_tokens", 0) > chosen.get("max_tokens", math.inf):
            from_defaults["min_tokens"] = chosen["max_tokens"]
        if chosen.get("min_tokens", 0) > from_defaults.get("max_tokens", math.inf):
            from_defaults["max_tokens"] = chosen["min_tokens"]
        return cls(**{**from_defaults, **chosen})


DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(DecodingSettings)}
FILTERS = ("sample", "temperature", "top_k", "top_p", "min_p")
BEAM_ONLY = ("length_penalty", "early_stop")
WORD_SETTINGS = ("stop", "banned", "forced")
MINIMUMS = {"max_tokens": 1, "min_tokens": 0, "beams": 1, "best": 1, "top_k": 1, "no_repeat": 0}
MAXIMUMS = {  # refused before anything of that size is allocated
    "max_tokens": 1_000_000,
    "min_tokens": 1_000_000,
    "beams": 1000,
    "best": 1000,
    "top_k": 1 << 30,
    "no_repeat": 1_000_000,
}
MAX_TOTAL_TOKENS = 10_000_000  # total tokens of all beams or continuations of a prompt
RANGES = {
    "temperature": (1e-4, 1e4),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (1e-4, 1e4),
    "length_penalty": (-20.0, 20.0),
}


def check_number(name: str, value: Any) -> None:
    """Raise an error for a value of the wrong type or out of range."""
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
        low, high = RANGES[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and low <= value <= high and (value != 0 or low < 0)):
            raise InputError(f"{setting(name)} must be a number {_range(low, high)}, not {_shown(value)}.")


def _range(low: float, high: float) -> str:
    return f"above 0 and at most {high:g}" if low == 0 else f"from {low:g} to {high:g}"


def _shown(value: object) -> str:
    return shorten(repr(value), 60)


def _words(name: str, value: Any) -> tuple[Word, ...]:
    """A tuple of words, each a text or a list of ids, from one or several."""
    if value is None:
        return ()
    is_single = isinstance(value, str) or (isinstance(value, Sequence) and len(value) > 0 and type(value[0]) is int)
    words = (value,) if is_single else value
    if not isinstance(words, Sequence) or not all(_is_word(word) for word in words):
        raise InputError(f"{setting(name)} is {_shown(value)}, expected words: texts, or lists of ids.")
    if any(len(word) == 0 for word in words):
        raise InputError(f"{setting(name)} contains an empty word. Remove it.")
    if name == "stop" and not all(isinstance(word, str) for word in words):
        raise InputError(f"{setting(name)} is {_shown(value)}, expected texts.")
    return tuple(words)


def _is_word(word: object) -> bool:
    return isinstance(word, str) or (isinstance(word, Sequence) and all(type(number) is int for number in word))


def _against(
    settings: DecodingSettings, first: str, second: str, why: str, *, fix: str = "Leave one out."
) -> InputError:
    values = f"{setting(first, getattr(settings, first))} and {setting(second, getattr(settings, second))}"
    return InputError(f"{values} contradict each other: {why}. {fix}")
