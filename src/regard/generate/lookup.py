"""Prompt lookup decoding: speculative greedy decoding with guesses copied from the text (Saxena 2023).

It works as follows:
1. The last tokens are searched earlier in the sequence; the tokens that followed there are the guess.
2. The network reads the guess in one pass and gives its own greedy token at every position.
3. Guessed tokens are accepted up to the first difference, plus one token of the network; the rest leaves the cache.
The result is that of plain greedy decoding, in fewer passes where the text repeats itself (Leviathan et al. 2023).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.errors import NotFinite
from regard.generate.loop import DecodingJob, Hypothesis
from regard.generate.rules import RuleContext, apply_rules
from regard.model.cache import Cache
from regard.ragged import Ragged

MAX_NGRAM = 3  # tokens at the end that are searched first; then fewer


def guess_tokens(ids: Sequence[int], max_tokens: int) -> list[int]:
    """Up to `max_tokens` tokens that followed the last earlier occurrence of the tokens at the end of the sequence."""
    if max_tokens < 1:
        return []
    row = torch.tensor(ids)
    for size in range(min(MAX_NGRAM, len(ids) - 1), 0, -1):
        same = (row[:-1].unfold(0, size, 1) == row[-size:]).all(1).nonzero()
        if same.numel():
            start = int(same[-1]) + size
            return list(ids[start : start + max_tokens])
    return []


def lookup_decoding(job: DecodingJob, prompts: Sequence[Sequence[int]]) -> Iterator[list[Hypothesis]]:
    """Yields all hypotheses after every pass; one with a `finish_reason` has ended."""
    rows, starts = job.hypotheses(prompts), job.decoder_prompts(prompts)
    sources = dict(enumerate(prompts)) if job.network.config.kind == "encoder-decoder" else {}
    cache = job.new_cache(prompts, starts, max(row.max_new_tokens for row in rows))
    alive, new_tokens = list(range(len(rows))), [list(start) for start in starts]
    guesses: list[list[int]] = [[] for _ in rows]
    while True:
        batch = Ragged.of([old + new for old, new in zip(new_tokens, guesses, strict=True)], device=job.device)
        before_B = cache.lengths
        states_ND = job.network.hidden_states(batch, cache)
        accepted = _read(job, rows, alive, starts, guesses, states_ND, batch)
        yield rows
        remaining = [index for index, i in enumerate(alive) if rows[i].finish_reason is None]
        if not remaining:
            return
        _forget(job, cache, before_B, new_tokens, accepted, remaining)
        alive = [alive[index] for index in remaining]
        new_tokens = [rows[i].ids[-1:] for i in alive]
        guesses = []
        for i in alive:
            whole = (list(sources[i]) if i in sources else []) + starts[i] + rows[i].ids
            guesses.append(guess_tokens(whole, min(job.settings.lookup, rows[i].max_new_tokens - len(rows[i].ids) - 1)))


def _read(
    job: DecodingJob,
    rows: Sequence[Hypothesis],
    alive: Sequence[int],
    starts: Sequence[Sequence[int]],
    guesses: Sequence[Sequence[int]],
    states_ND: Tensor,
    batch: Ragged,
) -> list[int]:
    """Append the accepted tokens and one more to every hypothesis; returns how many of each guess were accepted."""
    ends = batch.bounds[1:].tolist()
    spans = [range(end - 1 - len(guessed), end) for end, guessed in zip(ends, guesses, strict=True)]
    logits_XV = job.network.token_logits(states_ND[torch.tensor([n for span in spans for n in span])]).float()
    log_XV = logits_XV.log_softmax(-1) if job.log_probs else None
    finite = logits_XV.amax(1).isfinite().tolist()
    plain = logits_XV.argmax(1).tolist() if not job.rules else None
    accepted, at = [], 0
    for index, i in enumerate(alive):
        row, guessed, right = rows[i], guesses[index], 0
        while row.finish_reason is None:
            token = plain[at + right] if plain is not None else _ruled(job, row, starts[i], logits_XV[at + right])
            if not finite[at + right]:
                raise NotFinite(f"prompt {row.prompt}")
            row.ids.append(token)
            if log_XV is not None:
                row.log_probs.append(float(log_XV[at + right, token]))
            row.update_finish_reason(job.special, job.stop_check, job.settings)
            if right == len(guessed) or guessed[right] != token:
                break
            right += 1
        at += len(guessed) + 1
        accepted.append(right)
    return accepted


def _ruled(job: DecodingJob, row: Hypothesis, start: Sequence[int], logits_V: Tensor) -> int:
    ids_BT = torch.tensor([[*start, *row.ids]], device=logits_V.device)
    lengths_B = torch.tensor([ids_BT.shape[1]], device=logits_V.device)
    context = RuleContext(ids_BT, lengths_B, len(row.ids), [row.max_new_tokens], [row.prompt])
    return int(apply_rules(job.rules, logits_V.unsqueeze(0), context).argmax())


def _forget(
    job: DecodingJob,
    cache: Cache,
    before_B: Tensor,
    new_tokens: Sequence[Sequence[int]],
    accepted: Sequence[int],
    remaining: list[int],
) -> None:
    """Remove rejected tokens and ended sequences from the cache."""
    right = torch.tensor([len(new) + count for new, count in zip(new_tokens, accepted, strict=True)], device=job.device)
    cache.rewind(before_B + right)
    if len(remaining) < len(cache):
        cache.select(torch.tensor(remaining, device=job.device))
