"""Greedy decoding and sampling, token by token, and what all decoding methods share.

Prompts of different lengths are read as one ragged batch; after that every sequence gets one token per step, and one
that has ended leaves the batch. Shapes: B sequences, V vocabulary, T positions.
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
NO_TOKEN = -1  # instead of a token, where the network computed NaN
StopCheck = Callable[[Sequence[int]], bool]


class DecodableNetwork(Protocol):
    """A network that generates: it makes a cache and reads new tokens with it."""

    @property
    def config(self) -> Config: ...

    def new_cache(self, *, source: Ragged | None = None, sequences: int | None = None, capacity: int = 0) -> Cache: ...

    def step(self, batch: Ragged, cache: Cache) -> Tensor: ...


@dataclass(eq=False)
class Hypothesis:
    """One continuation while it is generated."""

    prompt: int
    max_new_tokens: int
    ids: list[int] = field(default_factory=list)  # new tokens
    log_probs: list[float] = field(default_factory=list)  # log-probability of each, before any rule
    finish_reason: str | None = None  # "end" token, "stop" text, "length" (max_tokens), or "full" context
    score: float | None = None  # of beam search: sum of log-probabilities with length penalty

    def update_finish_reason(
        self, special: SpecialIds, stop_check: StopCheck | None, settings: DecodingSettings
    ) -> None:
        """Set `finish_reason` if the last token ended the sequence."""
        if self.ids[-1] in special.eos:
            self.finish_reason = "end"
        elif stop_check is not None and stop_check(self.ids):
            self.finish_reason = "stop"
        elif len(self.ids) >= self.max_new_tokens:
            self.finish_reason = "length" if self.max_new_tokens == settings.max_tokens else "full"


@dataclass(frozen=True, eq=False)
class DecodingJob:
    """Everything that a decoding needs besides the prompts."""

    network: DecodableNetwork
    settings: DecodingSettings
    special: SpecialIds
    rules: Sequence[Rule] = ()
    stop_check: StopCheck | None = None  # whether the new ids contain a stop text
    log_probs: bool = False
    device: torch.device | str = "cpu"
    fixed_shapes: bool = False  # step in fixed shapes, which a GPU records as a CUDA graph
    max_new_tokens: Sequence[int] | None = None  # limit of each prompt, besides max_tokens

    def decoder_prompts(self, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
        """The tokens that the decoder reads before the first new one."""
        if self.network.config.kind != "encoder-decoder":
            return [list(prompt) for prompt in prompts]
        if self.special.decoder_start is None:
            raise InputError(
                "config.json does not say which token the decoder starts with. Add decoder_start_token_id to it."
            )
        return [[self.special.decoder_start] for _ in prompts]

    def hypotheses(self, prompts: Sequence[Sequence[int]], copies: int = 1) -> list[Hypothesis]:
        """One hypothesis per continuation, with the number of new tokens that its context allows."""
        max_tokens = self.network.config.max_tokens
        rows = []
        for number, start in enumerate(self.decoder_prompts(prompts)):
            limit = (
                self.settings.max_tokens
                if self.max_new_tokens is None
                else min(self.settings.max_tokens, self.max_new_tokens[number])
            )
            budget = limit if max_tokens is None or self.settings.slide else min(limit, max_tokens - len(start))
            if budget < 1 and max_tokens is not None:
                raise InputError(
                    f"prompt {number} has {pluralize(len(start), 'token')}, which leaves no position for a new one: "
                    f"this network reads at most {max_tokens}. Shorten it to at most {max_tokens - 1}, or drop the "
                    f"oldest tokens with {setting('slide', True)}."
                )
            rows += [Hypothesis(number, budget) for _ in range(copies)]
        return rows

    def prefill(
        self, prompts: Sequence[Sequence[int]], starts: Sequence[Sequence[int]], new: int
    ) -> tuple[Cache, Tensor]:
        """A cache that holds the prompts, with capacity for `new` tokens each, and the logits of the next token."""
        cache = self.new_cache(prompts, starts, new)
        return cache, self.network.step(Ragged.of(starts, device=self.device), cache)

    def stepper(self, cache: Cache) -> TokenStepper:
        """The stepper for this cache."""
        fixed = self.fixed_shapes and bool(cache.layers)  # recurrent networks cache states, not slots
        return TokenStepper(self.network, cache, fixed=fixed, limit=self.network.config.max_tokens)

    def new_cache(self, prompts: Sequence[Sequence[int]], starts: Sequence[Sequence[int]], new: int) -> Cache:
        """An empty cache with capacity for the decoder prompts and `new` tokens each."""
        max_tokens = self.network.config.max_tokens
        capacity = max(map(len, starts)) + new
        capacity = capacity if max_tokens is None else min(capacity, max_tokens)
        if not self.fixed_shapes:
            capacity = min(capacity, max(FIRST_SLOTS, *map(len, starts)))  # it grows when needed
        if self.network.config.kind == "encoder-decoder":
            return self.network.new_cache(source=Ragged.of(prompts, device=self.device), capacity=capacity)
        return self.network.new_cache(sequences=len(starts), capacity=capacity)

    def is_full(self, cache: Cache) -> bool:
        """Whether the longest sequence fills the context."""
        max_tokens = self.network.config.max_tokens
        return max_tokens is not None and cache.max_length >= max_tokens


def decode_step_by_step(job: DecodingJob, prompts: Sequence[Sequence[int]]) -> Iterator[list[Hypothesis]]:
    """Greedy decoding or sampling. Yields all hypotheses after every step; one with a `finish_reason` has ended.

    Greedy decoding takes the most likely token of every step. Sampling draws the token from the probabilities that the
    rules leave (temperature, top-k, top-p and so on; see rules.py). It works as follows:
    1. All prompts are read in one pass, which fills the cache and scores the first new token.
    2. The rules change the scores, and one token per sequence is chosen.
    3. Sequences that have ended leave the batch; the new tokens of the others are read in one pass. Back to 2.
    """
    batch = _GrowingBatch.start(job, prompts)
    for step in range(job.settings.max_tokens):
        next_B = batch.choose_tokens(step)
        yield batch.hypotheses
        stay = [index for index, i in enumerate(batch.alive) if batch.hypotheses[i].finish_reason is None]
        if not stay:
            return
        if batch.history is not None:
            batch.history.add(next_B)
        if len(stay) < len(batch.alive) and batch.should_shrink(len(stay)):
            next_B = batch.shrink(next_B, stay)
        batch.advance(next_B)


@dataclass(eq=False)
class _GrowingBatch:
    """The sequences of one decoding; `alive` are the numbers of those still in the batch."""

    job: DecodingJob
    hypotheses: list[Hypothesis]
    sources: list[Sequence[int]]
    starts: list[list[int]]
    alive: list[int]
    cache: Cache
    stepper: TokenStepper
    logits_BV: Tensor
    uniform_BT: Tensor | None  # random numbers in [0, 1) for sampling, one per token
    history: History | None  # the tokens so far, where rules read them

    @classmethod
    def start(cls, job: DecodingJob, prompts: Sequence[Sequence[int]]) -> _GrowingBatch:
        """Read the prompts."""
        settings = job.settings
        copies = settings.best if settings.is_sampling else 1
        hypotheses = job.hypotheses(prompts, copies)
        starts = [start for start in _tails(job, job.decoder_prompts(prompts)) for _ in range(copies)]
        sources = [prompt for prompt in prompts for _ in range(copies)]
        uniform_BT = None
        if settings.is_sampling:
            uniform_BT = _random_numbers(settings, len(prompts), copies).to(job.device)
        cache, logits_BV = job.prefill(sources, starts, max(row.max_new_tokens for row in hypotheses))
        history = None
        if job.rules:
            history = History(starts, settings.max_tokens, job.network.config.output_vocabulary, job.device)
        alive = list(range(len(hypotheses)))
        return cls(job, hypotheses, sources, starts, alive, cache, job.stepper(cache), logits_BV, uniform_BT, history)

    def choose_tokens(self, step: int) -> Tensor:
        """(B,) the next token of every sequence, appended to its hypothesis unless that has ended."""
        logits_BV = self.logits_BV.float()
        finite_B = logits_BV.amax(1).isfinite()  # False where one of the scores is NaN
        log_BV = logits_BV.log_softmax(-1) if self.job.log_probs else None
        if self.history is not None:
            rows = [self.hypotheses[i] for i in self.alive]
            context = self.history.rule_context(
                step, [row.max_new_tokens for row in rows], [row.prompt for row in rows]
            )
            logits_BV = apply_rules(self.job.rules, logits_BV, context)
        next_B = logits_BV.argmax(1) if self.uniform_BT is None else sample(logits_BV, self.uniform_BT[:, step])
        tokens = torch.where(finite_B, next_B, NO_TOKEN).tolist()  # read together: one wait for the device
        log_probs = None if log_BV is None else log_BV.gather(1, next_B.unsqueeze(1)).squeeze(1).tolist()
        for index, i in enumerate(self.alive):
            row = self.hypotheses[i]
            if row.finish_reason is not None:
                continue
            if tokens[index] == NO_TOKEN:
                raise NotFinite(f"prompt {row.prompt}")
            row.ids.append(tokens[index])
            if log_probs is not None:
                row.log_probs.append(log_probs[index])
            row.update_finish_reason(self.job.special, self.job.stop_check, self.job.settings)
        return next_B

    def should_shrink(self, stay: int) -> bool:
        """Whether ended sequences leave the batch now: always, unless a CUDA graph would have to be recorded again.

        Then they leave when half of the batch has ended, or when they cannot stay.
        """
        if not self.stepper.fixed:
            return True
        return bool(self.job.rules) or 2 * stay <= len(self.alive) or self.job.is_full(self.cache)

    def shrink(self, next_B: Tensor, stay: list[int]) -> Tensor:
        """Keep the sequences at these indices; returns their next tokens."""
        self.alive = [self.alive[index] for index in stay]
        stay_B = torch.tensor(stay, device=self.job.device)
        self.cache.select(stay_B)
        if self.uniform_BT is not None:
            self.uniform_BT = self.uniform_BT[stay_B]
        if self.history is not None:
            self.history.select(stay_B)
        return next_B[stay_B]

    def advance(self, next_B: Tensor) -> None:
        """Read the new tokens; where the context is full and may slide, read the last tokens again."""
        job = self.job
        if job.settings.slide and job.is_full(self.cache):
            sequences = [self.starts[i] + self.hypotheses[i].ids for i in self.alive]
            sources = [self.sources[i] for i in self.alive]
            self.cache, self.logits_BV = job.prefill(sources, _tails(job, sequences), job.settings.max_tokens)
            self.stepper = job.stepper(self.cache)
        else:
            self.logits_BV = self.stepper(next_B)


def _tails(job: DecodingJob, sequences: Sequence[Sequence[int]]) -> list[list[int]]:
    """Where the context may slide, the last tokens of sequences that fill it, leaving a quarter of it free."""
    limit = job.network.config.max_tokens
    if not job.settings.slide or limit is None:
        return [list(ids) for ids in sequences]
    return [list(ids) if len(ids) < limit else list(ids[-max(limit - limit // 4, 1) :]) for ids in sequences]


def _random_numbers(settings: DecodingSettings, prompts: int, copies: int) -> Tensor:
    """(B, T) a number in [0, 1) per token, from one generator per prompt, so that the batch makes no difference."""
    seed = settings.seed
    if seed is None:
        seed = int(torch.randint(2**31, (1,)))
    seeds = [seed] * prompts if isinstance(seed, int) else list(seed)
    if len(seeds) != prompts:
        raise InputError(
            f"{pluralize(prompts, 'prompt')} but {pluralize(len(seeds), 'seed')}; give one per prompt, or one seed."
        )
    numbers = []
    for number in seeds:
        generator = torch.Generator().manual_seed(number)
        numbers += [torch.rand(settings.max_tokens, dtype=torch.float64, generator=generator) for _ in range(copies)]
    return torch.stack(numbers)


def sample(logits_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """(B,) a token drawn by inverse transform: the first at which the cumulative probability exceeds the number."""
    cumulative_BV = logits_BV.softmax(-1).double().cumsum(-1)
    total_B1 = cumulative_BV[:, -1:]
    token_B = torch.searchsorted(cumulative_BV, uniform_B.unsqueeze(1) * total_B1, right=True).squeeze(1)
    return torch.minimum(token_B, (cumulative_BV < total_B1).sum(1))
