"""Beam search: the likeliest sequences found by carrying several at once (Sutskever et al. 2014).

Ended sequences are ranked by the sum of their log-probabilities over their length to the power `length_penalty`. The
beams of a prompt look at one memory, and a prompt that cannot improve leaves the batch.
Shapes: P prompts, W beams, K candidates (twice as many or more), V vocabulary, T new tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import InputError
from regard.generate.history import History
from regard.generate.loop import DecodingJob, Hypothesis
from regard.generate.rules import apply_rules

WORST = -1.0e9
CHUNKS = 16  # words of a strand


@dataclass(eq=False)
class Beams:
    """What runs and what has ended, of the prompts that are not done."""

    running_PW: Tensor  # sums of log-probabilities
    ids_PWT: Tensor
    chances_PWT: Tensor  # log-probability of each token, before any rule
    ended_PW: Tensor  # scores
    ended_ids_PWT: Tensor
    ended_chances_PWT: Tensor
    ended_sizes_PW: Tensor  # new tokens of each; 0 where none has ended
    open_P: Tensor  # whether what runs may still beat what has ended

    @classmethod
    def new(cls, prompts: int, beams: int, tokens: int, device: torch.device | str) -> Beams:
        """Only the first beam counts at first: the others are the same."""
        running_PW = torch.full((prompts, beams), WORST, device=device)
        running_PW[:, 0] = 0.0
        ids_PWT = torch.zeros(prompts, beams, tokens, dtype=torch.int64, device=device)
        sizes_PW = torch.zeros(prompts, beams, dtype=torch.int64, device=device)
        worst_PW = torch.full_like(running_PW, WORST)
        chances_PWT = torch.zeros(prompts, beams, tokens, device=device)
        open_P = torch.ones(prompts, dtype=torch.bool, device=device)
        return cls(running_PW, ids_PWT, chances_PWT, worst_PW, ids_PWT, chances_PWT, sizes_PW, open_P)

    def select(self, prompts: Tensor) -> None:
        for name, value in vars(self).items():
            setattr(self, name, value[prompts])


def beam_search(job: DecodingJob, prompts: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
    """The best continuations of each prompt, by beams."""
    width = job.settings.beams
    rooms = [row.max_new_tokens for row in job.hypotheses(prompts)]
    starts = job.decoder_prompts(prompts)
    found: list[list[Hypothesis]] = [[] for _ in prompts]
    alive = list(range(len(prompts)))
    cache, logits_BV = job.prefill(prompts, starts, max(rooms))
    cache.repeat(width)
    steps = job.stepper(cache)
    logits_BV = logits_BV.repeat_interleave(width, 0)
    history = History(
        [start for start in starts for _ in range(width)], max(rooms), job.network.config.output_vocabulary, job.device
    )
    beams = Beams.new(len(prompts), width, max(rooms), job.device)
    for step in range(max(rooms)):
        log_BV = logits_BV.float().log_softmax(-1)
        seen = history.rule_context(
            step, [rooms[i] for i in alive for _ in range(width)], [i for i in alive for _ in range(width)]
        )
        ruled_BV = apply_rules(job.rules, log_BV, seen)
        before_PWT = beams.ids_PWT[:, :, :step]
        from_PW, next_PW = advance(job, beams, log_BV, ruled_BV, step, [rooms[i] for i in alive])
        alike_PW = shared_prefix_lengths(before_PWT, from_PW)
        stay = _stay(job, beams, step, [rooms[i] for i in alive])
        for place in sorted(set(range(len(alive))) - set(stay)):
            found[alive[place]] = _rows(job, beams, place, alive[place], rooms[alive[place]])
        if not stay:
            break
        kept_P = torch.tensor(stay, device=job.device)
        rows_B = (from_PW + width * torch.arange(len(alive), device=job.device).unsqueeze(1))[kept_P].flatten()
        if len(stay) < len(alive):
            alive = [alive[place] for place in stay]
            beams.select(kept_P)
        next_B = next_PW[kept_P].flatten()
        cache.select(rows_B, changed=(step - alike_PW)[kept_P].flatten())
        history.select(rows_B)
        history.add(next_B)
        logits_BV = steps(next_B)
    return found


def shared_prefix_lengths(ids_PWT: Tensor, from_PW: Tensor) -> Tensor:
    """(P, W) how many words the beam that was in a place shares with the one that takes it: they need not be moved."""
    same_PWT = _taken(ids_PWT, from_PW) == ids_PWT
    return same_PWT.long().cumprod(-1).sum(-1)


def advance(
    job: DecodingJob, beams: Beams, log_BV: Tensor, ruled_BV: Tensor, step: int, rooms: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Take the best candidates of all beams of a prompt; (P, W) which beam each new one continues, and its token."""
    width = job.settings.beams
    prompts, vocabulary = len(rooms), log_BV.shape[1]
    count = min(max(2, 1 + len(job.special.eos)) * width, width * vocabulary)  # so many, lest all of them end
    each = min(count, vocabulary)
    best_BK, words_BK = top_candidates(ruled_BV, each)  # the best of all beams are among the best of each
    sums_PX = (best_BK.view(prompts, width, each) + beams.running_PW.unsqueeze(-1)).flatten(1)
    sums_PK, place_PK = sums_PX.topk(count)
    from_PK, next_PK = place_PK // each, words_BK.view(prompts, -1).gather(1, place_PK)
    ids_PKT = _taken(beams.ids_PWT, from_PK)
    ids_PKT[:, :, step] = next_PK
    chances_PKT = _taken(beams.chances_PWT, from_PK)
    chances_PKT[:, :, step] = log_BV.view(prompts, -1).gather(1, from_PK * vocabulary + next_PK)
    over_PK = _over(job, ids_PKT, next_PK, step, rooms)
    _keep_ended(job, beams, sums_PK, ids_PKT, chances_PKT, over_PK, step)
    beams.running_PW, best_PW = (sums_PK + over_PK * WORST).topk(width)
    beams.ids_PWT, beams.chances_PWT = _taken(ids_PKT, best_PW), _taken(chances_PKT, best_PW)
    return from_PK.gather(1, best_PW), next_PK.gather(1, best_PW)


def top_candidates(log_BV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk`, which takes long for long rows on a CPU: words are dealt to strands, the best are in the best strands.

    Of words that are exactly as likely it may take others."""
    strands = log_BV.shape[1] // CHUNKS
    if log_BV.is_cuda or strands < 2 * count:
        found: tuple[Tensor, Tensor] = log_BV.topk(count)
        return found
    dealt_BDS = log_BV[:, : CHUNKS * strands].unflatten(1, (CHUNKS, strands))
    best_BK = dealt_BDS.amax(1).topk(count).indices
    of_those_BX = dealt_BDS.gather(2, best_BK.unsqueeze(1).expand(-1, CHUNKS, -1)).flatten(1)
    values_BK, place_BK = torch.cat((of_those_BX, log_BV[:, CHUNKS * strands :]), 1).topk(count)
    words_BK = place_BK // count * strands + best_BK.gather(1, place_BK % count)
    rest_BK = place_BK - CHUNKS * count
    return values_BK, torch.where(rest_BK < 0, words_BK, rest_BK + CHUNKS * strands)


def _taken(values_PWT: Tensor, index_PK: Tensor) -> Tensor:
    return values_PWT.gather(1, index_PK.unsqueeze(-1).expand(-1, -1, values_PWT.shape[-1]))


def _over(job: DecodingJob, ids_PKT: Tensor, next_PK: Tensor, step: int, rooms: Sequence[int]) -> Tensor:
    """(P, K) which candidates end with this token."""
    over_PK = torch.tensor([step + 1 >= room for room in rooms], device=next_PK.device).unsqueeze(1)
    over_PK = torch.isin(next_PK, next_PK.new_tensor(job.special.eos)) | over_PK
    if job.stop_check is not None:
        said = [[job.stop_check(ids) for ids in row] for row in ids_PKT[:, :, : step + 1].tolist()]
        over_PK = over_PK | torch.tensor(said, device=over_PK.device)
    return over_PK


def _keep_ended(
    job: DecodingJob, beams: Beams, sums_PK: Tensor, ids_PKT: Tensor, chances_PKT: Tensor, over_PK: Tensor, step: int
) -> None:
    """Keep the best of what has ended before and of what ends now, where a prompt is still open."""
    width = job.settings.beams
    first_K = torch.arange(sums_PK.shape[1], device=sums_PK.device) < width
    now_PK = over_PK & first_K & beams.open_P.unsqueeze(1)
    if job.settings.early_stop is True:
        now_PK = now_PK & ~(beams.ended_sizes_PW > 0).all(1, keepdim=True)
    scores_PK = torch.where(now_PK, sums_PK / (step + 1) ** job.settings.length_penalty, 2 * WORST)
    both = torch.cat((beams.ended_PW, scores_PK), 1)
    beams.ended_PW, best_PW = both.topk(width)
    sizes_PK = torch.where(now_PK, step + 1, 0)
    beams.ended_sizes_PW = torch.cat((beams.ended_sizes_PW, sizes_PK), 1).gather(1, best_PW)
    beams.ended_ids_PWT = _taken(torch.cat((beams.ended_ids_PWT, ids_PKT), 1), best_PW)
    beams.ended_chances_PWT = _taken(torch.cat((beams.ended_chances_PWT, chances_PKT), 1), best_PW)


def _stay(job: DecodingJob, beams: Beams, step: int, rooms: Sequence[int]) -> list[int]:
    """Which prompts go on: those where a running beam may still beat an ended one, and there is room."""
    penalty, early = job.settings.length_penalty, job.settings.early_stop
    full_P = (beams.ended_sizes_PW > 0).all(1)
    lengths = [room if early == "never" and penalty > 0 else step + 1 for room in rooms]
    divisor_P = torch.tensor([length**penalty for length in lengths], device=full_P.device)
    worst_PW = torch.where(beams.ended_sizes_PW > 0, beams.ended_PW.amin(1, keepdim=True), WORST)
    hope_P = ((beams.running_PW[:, :1] / divisor_P.unsqueeze(1)) > worst_PW).any(1)
    beams.open_P = beams.open_P & hope_P
    stay_P = beams.open_P & ~(full_P & (early is True))
    return [place for place, stays in enumerate(stay_P.tolist()) if stays and step + 1 < rooms[place]]


def _rows(job: DecodingJob, beams: Beams, place: int, prompt: int, room: int) -> list[Hypothesis]:
    """The best of what has ended; there is always one, unless its score is not a number."""
    rows = []
    for beam in range(job.settings.best):
        size = int(beams.ended_sizes_PW[place, beam])
        if size == 0:
            continue
        row = Hypothesis(prompt, room, ids=beams.ended_ids_PWT[place, beam, :size].tolist())
        row.log_probs = beams.ended_chances_PWT[place, beam, :size].tolist()
        row.score = float(beams.ended_PW[place, beam])
        row.update_finish_reason(job.special, job.stop_check, job.settings)
        rows.append(row)
    if not rows:
        raise InputError(
            f"no continuation of prompt {prompt} has a score that is a number. "
            f"length_penalty is {job.settings.length_penalty:g}; use one nearer to 1, or a network with finite scores."
        )
    return rows
