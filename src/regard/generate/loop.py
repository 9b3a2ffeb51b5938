"""Token by token: greedy decoding and sampling over anything that steps.

Prompts of different lengths are read as one ragged batch; after that every sequence brings one token a step, and one
that has ended leaves the batch. Shapes: B sequences, V vocabulary, T places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from regard.config import Config
from regard.errors import InputError, NotFinite, pluralize, setting
from regard.generate.history import History
from regard.generate.rules import Rule, apply_rules
from regard.generate.settings import DecodingSettings, SpecialIds
from regard.model.cache import Cache
from regard.model.kernels.decode_graphs import TokenStepper
from regard.ragged import Ragged

FIRST_SLOTS = 4096
NO_TOKEN = -1  # in the place of one, where the network computed no number
StopCheck = Callable[[Sequence[int]], bool]


class DecodableNetwork(Protocol):
    """What can be decoded: it begins with a cache and steps from token to token."""

    @property
    def config(self) -> Config: ...

    def new_cache(self, *, source: Ragged | None = None, sequences: int | None = None, capacity: int = 0) -> Cache: ...

    def step(self, batch: Ragged, cache: Cache) -> Tensor: ...

    def hidden_states(self, batch: Ragged, cache: Cache) -> Tensor: ...

    def token_logits(self, hidden_ND: Tensor) -> Tensor: ...


@dataclass(eq=False)
class Hypothesis:
    """One continuation that grows."""

    prompt: int
    max_new_tokens: int  # most new tokens
    ids: list[int] = field(default_factory=list)  # new ones
    log_probs: list[float] = field(default_factory=list)  # of each, as the network said it, before any rule
    finish_reason: str | None = None  # what ended it: "end" token, "stop" text, "length", or a "full" context
    score: float | None = None  # beams: what they were ranked by

    def update_finish_reason(
        self, special: SpecialIds, stop_check: StopCheck | None, settings: DecodingSettings
    ) -> None:
        """Note whether the last token was the last."""
        if self.ids[-1] in special.eos:
            self.finish_reason = "end"
        elif stop_check is not None and stop_check(self.ids):
            self.finish_reason = "stop"
        elif len(self.ids) >= self.max_new_tokens:
            self.finish_reason = "length" if self.max_new_tokens == settings.max_tokens else "full"


@dataclass(frozen=True, eq=False)
class DecodingJob:
    """Everything of one decoding but the tokens."""

    network: DecodableNetwork
    settings: DecodingSettings
    special: SpecialIds
    rules: Sequence[Rule] = ()
    stop_check: StopCheck | None = None  # whether a text that stops was said
    log_probs: bool = False
    device: torch.device | str = "cpu"
    fixed_shapes: bool = False  # step in fixed shapes, which a GPU records
    max_new_tokens: Sequence[int] | None = None  # most new tokens of each prompt, where they have limits of their own

    def decoder_prompts(self, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
        """What the decoder has before the first new token."""
        if self.network.config.kind != "encoder-decoder":
            return [list(prompt) for prompt in prompts]
        if self.special.decoder_start is None:
            raise InputError(
                "this encoder-decoder does not say which token its decoder starts with. Put decoder_start_token_id "
                "into its config.json."
            )
        return [[self.special.decoder_start] for _ in prompts]

    def hypotheses(self, prompts: Sequence[Sequence[int]], copies: int = 1) -> list[Hypothesis]:
        """One row a continuation, with the room its context leaves it."""
        longest = self.network.config.max_tokens
        rows = []
        for number, start in enumerate(self.decoder_prompts(prompts)):
            most = (
                self.settings.max_tokens
                if self.max_new_tokens is None
                else min(self.settings.max_tokens, self.max_new_tokens[number])
            )
            room = most if longest is None or self.settings.slide else min(most, longest - len(start))
            if room < 1 and longest is not None:
                raise InputError(
                    f"prompt {number} has {pluralize(len(start), 'token')}, which leaves no place for a new one: "
                    f"this network has {longest}. Shorten it to at most {longest - 1}, or let the oldest tokens go "
                    f"with {setting('slide', True)}."
                )
            rows += [Hypothesis(number, room) for _ in range(copies)]
        return rows

    def prefill(
        self, prompts: Sequence[Sequence[int]], starts: Sequence[Sequence[int]], new: int
    ) -> tuple[Cache, Tensor]:
        """A cache that holds the prompts, with room for `new` tokens each, and the scores of what comes next."""
        cache = self.new_cache(prompts, starts, new)
        return cache, self.network.step(Ragged.of(starts, device=self.device), cache)

    def stepper(self, cache: Cache) -> TokenStepper:
        """How the network steps from here."""
        fixed = self.fixed_shapes and bool(cache.layers)  # recurrent networks keep states, no slots that stay in place
        return TokenStepper(self.network, cache, fixed=fixed, limit=self.network.config.max_tokens)

    def new_cache(self, prompts: Sequence[Sequence[int]], starts: Sequence[Sequence[int]], new: int) -> Cache:
        """An empty cache with room for the starts and `new` tokens each."""
        longest = self.network.config.max_tokens
        capacity = max(map(len, starts)) + new
        capacity = capacity if longest is None else min(capacity, longest)
        if not self.fixed_shapes:
            capacity = min(capacity, max(FIRST_SLOTS, *map(len, starts)))  # more are added when they are needed
        if self.network.config.kind == "encoder-decoder":
            return self.network.new_cache(source=Ragged.of(prompts, device=self.device), capacity=capacity)
        return self.network.new_cache(sequences=len(starts), capacity=capacity)

    def is_full(self, cache: Cache) -> bool:
        """Whether the longest sequence has no place left for a token."""
        longest = self.network.config.max_tokens
        return longest is not None and cache.max_length >= longest


def decode_step_by_step(job: DecodingJob, prompts: Sequence[Sequence[int]]) -> Iterator[list[Hypothesis]]:
    """All rows after every step; a row with a `why` has ended."""
    settings, copies = job.settings, job.settings.best if job.settings.is_sampling else 1
    rows = job.hypotheses(prompts, copies)
    starts = [start for start in _tails(job, job.decoder_prompts(prompts)) for _ in range(copies)]
    sources = [prompt for prompt in prompts for _ in range(copies)]
    drawn_BT = _drawn(settings, len(prompts), copies).to(job.device) if settings.is_sampling else None
    alive = list(range(len(rows)))
    cache, logits_BV = job.prefill(sources, starts, max(row.max_new_tokens for row in rows))
    steps = job.stepper(cache)
    history = (
        History(starts, settings.max_tokens, job.network.config.output_vocabulary, job.device) if job.rules else None
    )
    for step in range(settings.max_tokens):
        logits_BV = logits_BV.float()
        finite_B = logits_BV.amax(1).isfinite()  # not where one of them is NaN
        log_BV = logits_BV.log_softmax(-1) if job.log_probs else None
        if history is not None:
            logits_BV = apply_rules(
                job.rules,
                logits_BV,
                history.rule_context(step, [rows[i].max_new_tokens for i in alive], [rows[i].prompt for i in alive]),
            )
        next_B = logits_BV.argmax(1) if drawn_BT is None else sample(logits_BV, drawn_BT[:, step])
        chosen = torch.where(finite_B, next_B, NO_TOKEN).tolist()  # read together: one wait for the device
        chances = None if log_BV is None else log_BV.gather(1, next_B.unsqueeze(1)).squeeze(1).tolist()
        for place, i in enumerate(alive):
            if rows[i].finish_reason is not None:
                continue
            if chosen[place] == NO_TOKEN:
                raise NotFinite(f"prompt {rows[i].prompt}")
            rows[i].ids.append(chosen[place])
            if chances is not None:
                rows[i].log_probs.append(chances[place])
            rows[i].update_finish_reason(job.special, job.stop_check, settings)
        yield rows
        stay = [place for place, i in enumerate(alive) if rows[i].finish_reason is None]
        if not stay:
            return
        if history is not None:
            history.add(next_B)
        if len(stay) < len(alive) and (not steps.fixed or _leave(job, cache, len(alive), len(stay))):
            alive = [alive[place] for place in stay]
            kept_B = torch.tensor(stay, device=job.device)
            cache.select(kept_B)
            next_B = next_B[kept_B]
            drawn_BT = None if drawn_BT is None else drawn_BT[kept_B]
            if history is not None:
                history.select(kept_B)
        if settings.slide and job.is_full(cache):
            whole = [starts[i] + rows[i].ids for i in alive]
            cache, logits_BV = job.prefill([sources[i] for i in alive], _tails(job, whole), settings.max_tokens)
            steps = job.stepper(cache)
        else:
            logits_BV = steps(next_B)


def _leave(job: DecodingJob, cache: Cache, alive: int, stay: int) -> bool:
    """Whether to let ended sequences go, which a recording is made anew for: when they are half, or cannot stay."""
    return bool(job.rules) or 2 * stay <= alive or job.is_full(cache)


def _tails(job: DecodingJob, whole: Sequence[Sequence[int]]) -> list[list[int]]:
    """The last tokens, with a quarter of the context left free, where sliding is allowed and they are too many."""
    limit = job.network.config.max_tokens
    if not job.settings.slide or limit is None:
        return [list(ids) for ids in whole]
    return [list(ids) if len(ids) < limit else list(ids[-max(limit - limit // 4, 1) :]) for ids in whole]


def _drawn(settings: DecodingSettings, prompts: int, copies: int) -> Tensor:
    """(B, T) a number in [0, 1) a token, of a generator of each row's own, so that its batch makes no difference."""
    given = settings.seed
    if given is None:
        given = int(torch.randint(2**31, (1,)))
    seeds = [given] * prompts if isinstance(given, int) else list(given)
    if len(seeds) != prompts:
        raise InputError(
            f"{pluralize(prompts, 'prompt')} but {pluralize(len(seeds), 'seed')}; give one a prompt, or one for all."
        )
    drawn = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        drawn += [torch.rand(settings.max_tokens, dtype=torch.float64, generator=generator) for _ in range(copies)]
    return torch.stack(drawn)


def sample(logits_BV: Tensor, drawn_B: Tensor) -> Tensor:
    """(B,) the word at which the summed probabilities pass the number that was drawn."""
    mass_BV = logits_BV.softmax(-1).double().cumsum(-1)
    all_B1 = mass_BV[:, -1:]
    found_B = torch.searchsorted(mass_BV, drawn_B.unsqueeze(1) * all_B1, right=True).squeeze(1)
    return torch.minimum(found_B, (mass_BV < all_B1).sum(1))
