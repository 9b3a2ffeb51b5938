"""How a sequence is continued: settings that are checked when made, and the ids a model starts and stops with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from regard.errors import InputError, did_you_mean

Constraint = Callable[[int, list[int]], Sequence[int] | None]
"""(number of the prompt, its new ids so far) -> the ids that may come next; None where all may."""
Word = str | Sequence[int]


@dataclass(frozen=True)
class Ends:
    """The ids a model starts and stops with."""

    stop: tuple[int, ...] = ()  # a sequence is over with any of them
    start: int | None = None  # what the decoder beside an encoder begins with
    first: int | None = None  # always the first new token
    last: int | None = None  # always the last where a sequence grows to its greatest length


@dataclass(frozen=True)
class Decoding:
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
        for name in ("stop", "banned", "forced"):
            given = getattr(self, name)
            one = isinstance(given, str) or (bool(given) and isinstance(given[0], int))
            object.__setattr__(self, name, (given,) if one else tuple(given or ()))
        self._check_ranges()
        self._check_together()

    def _check_ranges(self) -> None:
        for name, least in LEAST.items():
            given = getattr(self, name)
            if given is not None and (type(given) is not int or given < least):
                raise InputError(f"{name} must be a whole number of at least {least}, not {given!r}.")
        for name, (above, most) in SHARES.items():
            given = getattr(self, name)
            number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
            if given is not None and not (number and above < given <= most):
                limit = f" and at most {most:g}" if most < math.inf else ""
                raise InputError(f"{name} must be a number above {above:g}{limit}, not {given!r}.")
        if self.early_stop not in (True, False, "never"):
            raise InputError(f'early_stop is {self.early_stop!r}. Choose True, False or "never".')
        for name in ("stop", "banned", "forced"):
            if any(len(word) == 0 for word in getattr(self, name)):
                raise InputError(f"{name} holds an empty word. Leave it out.")

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
        if self.best > 1 and self.beams == 1 and not self.samples:
            raise _against(self, "best", "beams", "one beam finds one continuation", mend="Raise beams, or sample.")
        if 1 < self.beams < self.best:
            raise _against(self, "best", "beams", "there are no more continuations than beams")
        both = [word for word in self.forced if any(list(word) == list(other) for other in self.banned)]
        if both:
            raise InputError(f"forced and banned contradict each other: both hold {both[0]!r}. Take it out of one.")
        for name in ("beams", "contrast", "lookup"):
            if self.slide and self._is_set(name):
                raise _against(self, "slide", name, "only greedy decoding and sampling can slide")

    def _is_set(self, name: str) -> bool:
        return bool(getattr(self, name) != DEFAULTS[name])

    @property
    def samples(self) -> bool:
        """Whether tokens are drawn."""
        return self.contrast is None and any(self._is_set(name) for name in FILTERS)

    @classmethod
    def of(cls, given: Mapping[str, Any], *, usual: Mapping[str, Any] | None = None) -> Decoding:
        """From names and values; `usual` holds those of the model, which give way to another way of choosing."""
        for name in given:
            if name not in DEFAULTS:
                raise InputError(f'"{name}" is not a setting of decoding.{did_you_mean(name, DEFAULTS)}')
        wanted = {name: value for name, value in given.items() if value is not None}
        kept = {name: value for name, value in (usual or {}).items() if name not in wanted}
        if any(name in wanted for name in (*FILTERS, "contrast", "lookup")):
            kept = {name: value for name, value in kept.items() if name not in ("beams", *BEAM_ONLY)}
        if wanted.get("beams", 1) > 1 or "contrast" in wanted or "lookup" in wanted:
            kept = {name: value for name, value in kept.items() if name not in FILTERS}
        if kept.get("min_tokens", 0) > wanted.get("max_tokens", math.inf):
            kept["min_tokens"] = wanted["max_tokens"]
        if wanted.get("min_tokens", 0) > kept.get("max_tokens", math.inf):
            kept["max_tokens"] = wanted["min_tokens"]
        return cls(**{**kept, **wanted})


DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(Decoding)}
FILTERS = ("sample", "temperature", "top_k", "top_p", "min_p", "typical")
BEAM_ONLY = ("length_penalty", "early_stop")
LEAST = {"max_tokens": 1, "min_tokens": 0, "beams": 1, "best": 1, "top_k": 1, "no_repeat": 0, "lookup": 0}
SHARES = {
    "temperature": (0.0, math.inf),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "typical": (0.0, 1.0),
    "contrast": (0.0, 1.0),
    "repetition_penalty": (0.0, math.inf),
    "length_penalty": (-math.inf, math.inf),
}


def _against(settings: Decoding, one: str, other: str, why: str, *, mend: str = "Leave one out.") -> InputError:
    values = f"{one}={getattr(settings, one)!r} and {other}={getattr(settings, other)!r}"
    return InputError(f"{values} contradict each other: {why}. {mend}")
