"""Greedy decoding several tokens at a time, guessed by copying what followed the same words earlier (Saxena 2023).

The network reads a guess in one pass and says what it would have taken at each place; what agrees is kept, so the
result is that of plain greedy decoding.
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

MAX_NGRAM = 3  # words at the end that are looked for, then fewer


def guess_tokens(ids: Sequence[int], max_tokens: int) -> list[int]:
    """Up to `most` tokens that followed the last place where the sequence had the tokens it ends with."""
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
    """All rows after every pass; a row with a `why` has ended."""
    rows, starts = job.hypotheses(prompts), job.decoder_prompts(prompts)
    sources = dict(enumerate(prompts)) if job.network.config.kind == "encoder-decoder" else {}
    cache = job.new_cache(prompts, starts, max(row.max_new_tokens for row in rows))
    alive, brought = list(range(len(rows))), [list(start) for start in starts]
    guesses: list[list[int]] = [[] for _ in rows]
    while True:
        batch = Ragged.of([old + new for old, new in zip(brought, guesses, strict=True)], device=job.device)
        before_B = cache.lengths
        states_ND = job.network.hidden_states(batch, cache)
        kept = _read(job, rows, alive, starts, guesses, states_ND, batch)
        yield rows
        stay = [place for place, i in enumerate(alive) if rows[i].finish_reason is None]
        if not stay:
            return
        _forget(job, cache, before_B, brought, kept, stay)
        alive = [alive[place] for place in stay]
        brought = [rows[i].ids[-1:] for i in alive]
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
    """Take what agrees with each guess and one token more; how many of each guess were right."""
    ends = batch.bounds[1:].tolist()
    places = [range(end - 1 - len(guessed), end) for end, guessed in zip(ends, guesses, strict=True)]
    logits_XV = job.network.token_logits(states_ND[torch.tensor([n for span in places for n in span])]).float()
    log_XV = logits_XV.log_softmax(-1) if job.log_probs else None
    finite = logits_XV.amax(1).isfinite().tolist()
    plain = logits_XV.argmax(1).tolist() if not job.rules else None
    kept, at = [], 0
    for place, i in enumerate(alive):
        row, guessed, right = rows[i], guesses[place], 0
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
        kept.append(right)
    return kept


def _ruled(job: DecodingJob, row: Hypothesis, start: Sequence[int], logits_V: Tensor) -> int:
    ids_BT = torch.tensor([[*start, *row.ids]], device=logits_V.device)
    lengths_B = torch.tensor([ids_BT.shape[1]], device=logits_V.device)
    seen = RuleContext(ids_BT, lengths_B, len(row.ids), [row.max_new_tokens], [row.prompt])
    return int(apply_rules(job.rules, logits_V.unsqueeze(0), seen).argmax())


def _forget(
    job: DecodingJob,
    cache: Cache,
    before_B: Tensor,
    brought: Sequence[Sequence[int]],
    kept: Sequence[int],
    stay: list[int],
) -> None:
    """Leave in the cache what was right, of the sequences that go on."""
    right = torch.tensor([len(new) + count for new, count in zip(brought, kept, strict=True)], device=job.device)
    cache.rewind(before_B + right)
    if len(stay) < len(cache):
        cache.select(torch.tensor(stay, device=job.device))
