"""Beam search: keep the `beams` most likely partial sequences of every prompt at each step (Sutskever et al. 2014).

It works as follows:
1. Every beam of a prompt is extended by its most likely next tokens; the candidates of all beams compete.
2. Candidates that end are ranked by the sum of their log-probabilities divided by length ** `length_penalty` (Wu et al.
   2016), and the best `beams` of them are kept; the best others are the beams of the next step.
3. A prompt whose running beams cannot beat its ended ones leaves the batch.
The beams of a prompt share one copy of the encoder's states.

Shapes: P prompts, W beams, K candidates (twice as many or more), V vocabulary, T new tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import InputError
from regard.generate.cancel import check_cancelled
from regard.generate.history import History
from regard.generate.loop import DecodingJob, Hypothesis
from regard.generate.rules import apply_rules

WORST = -1.0e9
CHUNKS = 16  # chunks that the vocabulary is split into


@dataclass(eq=False)
class Beams:
    """Running beams and ended sequences of the prompts that are not finished."""

    running_PW: Tensor  # sums of log-probabilities
    ids_PWT: Tensor
    chances_PWT: Tensor  # log-probability of each token, before any rule
    ended_PW: Tensor  # scores
    ended_ids_PWT: Tensor
    ended_chances_PWT: Tensor
    ended_sizes_PW: Tensor  # new tokens of each; 0 where none has ended
    open_P: Tensor  # whether a running beam may still beat an ended sequence

    @classmethod
    def new(cls, prompts: int, beams: int, tokens: int, device: torch.device | str) -> Beams:
        """All beams start equal, so only the first has a chance at the first step."""
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
    """The best continuations of each prompt."""
    width = job.settings.beams
    limits = [row.max_new_tokens for row in job.hypotheses(prompts)]
    starts = job.decoder_prompts(prompts)
    results: list[list[Hypothesis]] = [[] for _ in prompts]
    alive = list(range(len(prompts)))
    cache, logits_BV = job.prefill(prompts, starts, max(limits))
    cache.repeat(width)
    steps = job.stepper(cache)
    logits_BV = logits_BV.repeat_interleave(width, 0)
    history = History(
        [start for start in starts for _ in range(width)], max(limits), job.network.config.output_vocabulary, job.device
    )
    beams = Beams.new(len(prompts), width, max(limits), job.device)
    for step in range(max(limits)):
        check_cancelled()
        log_BV = logits_BV.float().log_softmax(-1)
        context = history.rule_context(
            step, [limits[i] for i in alive for _ in range(width)], [i for i in alive for _ in range(width)]
        )
        ruled_BV = apply_rules(job.rules, log_BV, context)
        before_PWT = beams.ids_PWT[:, :, :step]
        from_PW, next_PW = advance(job, beams, log_BV, ruled_BV, step, [limits[i] for i in alive])
        alike_PW = shared_prefix_lengths(before_PWT, from_PW)
        stay = _stay(job, beams, step, [limits[i] for i in alive])
        for index in sorted(set(range(len(alive))) - set(stay)):
            results[alive[index]] = _rows(job, beams, index, alive[index], limits[alive[index]])
        if not stay:
            break
        kept_P = torch.tensor(stay, device=job.device)
        rows_B = (from_PW + width * torch.arange(len(alive), device=job.device).unsqueeze(1))[kept_P].flatten()
        if len(stay) < len(alive):
            alive = [alive[index] for index in stay]
            beams.select(kept_P)
        next_B = next_PW[kept_P].flatten()
        cache.select(rows_B, changed=(step - alike_PW)[kept_P].flatten())
        history.select(rows_B)
        history.add(next_B)
        logits_BV = steps(next_B)
    return results


def shared_prefix_lengths(ids_PWT: Tensor, from_PW: Tensor) -> Tensor:
    """(P, W) how many first tokens the old and the new beam of a slot share; their cache entries need not be moved."""
    same_PWT = _taken(ids_PWT, from_PW) == ids_PWT
    return same_PWT.long().cumprod(-1).sum(-1)


def advance(
    job: DecodingJob, beams: Beams, log_BV: Tensor, ruled_BV: Tensor, step: int, limits: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Choose the best candidates of each prompt; (P, W) the beam that each new beam continues, and its next token."""
    width = job.settings.beams
    prompts, vocabulary = len(limits), log_BV.shape[1]
    count = min(max(2, 1 + len(job.special.eos)) * width, width * vocabulary)  # enough that not all of them end
    each = min(count, vocabulary)
    best_BK, words_BK = top_candidates(ruled_BV, each)  # the best candidates overall are among the best of each beam
    sums_PX = (best_BK.view(prompts, width, each) + beams.running_PW.unsqueeze(-1)).flatten(1)
    sums_PK, place_PK = sums_PX.topk(count)
    from_PK, next_PK = place_PK // each, words_BK.view(prompts, -1).gather(1, place_PK)
    ids_PKT = _taken(beams.ids_PWT, from_PK)
    ids_PKT[:, :, step] = next_PK
    chances_PKT = _taken(beams.chances_PWT, from_PK)
    chances_PKT[:, :, step] = log_BV.view(prompts, -1).gather(1, from_PK * vocabulary + next_PK)
    over_PK = _over(job, ids_PKT, next_PK, step, limits)
    _keep_ended(job, beams, sums_PK, ids_PKT, chances_PKT, over_PK, step)
    beams.running_PW, best_PW = (sums_PK + over_PK * WORST).topk(width)
    beams.ids_PWT, beams.chances_PWT = _taken(ids_PKT, best_PW), _taken(chances_PKT, best_PW)
    return from_PK.gather(1, best_PW), next_PK.gather(1, best_PW)


def top_candidates(log_BV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk`, but faster for large vocabularies on a CPU.

    Columns are distributed over groups, and the top values must be in the groups with the largest maxima, so only these
    groups are searched. Of exactly equal values it may return others than `topk`.
    """
    chunks = log_BV.shape[1] // CHUNKS
    if log_BV.is_cuda or chunks < 2 * count:
        results: tuple[Tensor, Tensor] = log_BV.topk(count)
        return results
    dealt_BDS = log_BV[:, : CHUNKS * chunks].unflatten(1, (CHUNKS, chunks))
    best_BK = dealt_BDS.amax(1).topk(count).indices
    of_those_BX = dealt_BDS.gather(2, best_BK.unsqueeze(1).expand(-1, CHUNKS, -1)).flatten(1)
    values_BK, place_BK = torch.cat((of_those_BX, log_BV[:, CHUNKS * chunks :]), 1).topk(count)
    words_BK = place_BK // count * chunks + best_BK.gather(1, place_BK % count)
    rest_BK = place_BK - CHUNKS * count
    return values_BK, torch.where(rest_BK < 0, words_BK, rest_BK + CHUNKS * chunks)


def _taken(values_PWT: Tensor, index_PK: Tensor) -> Tensor:
    return values_PWT.gather(1, index_PK.unsqueeze(-1).expand(-1, -1, values_PWT.shape[-1]))


def _over(job: DecodingJob, ids_PKT: Tensor, next_PK: Tensor, step: int, limits: Sequence[int]) -> Tensor:
    """(P, K) which candidates end with their new token."""
    over_PK = torch.tensor([step + 1 >= limit for limit in limits], device=next_PK.device).unsqueeze(1)
    over_PK = torch.isin(next_PK, next_PK.new_tensor(job.special.eos)) | over_PK
    if job.stop_check is not None:
        stopped = [[job.stop_check(ids) for ids in row] for row in ids_PKT[:, :, : step + 1].tolist()]
        over_PK = over_PK | torch.tensor(stopped, device=over_PK.device)
    return over_PK


def _keep_ended(
    job: DecodingJob, beams: Beams, sums_PK: Tensor, ids_PKT: Tensor, chances_PKT: Tensor, over_PK: Tensor, step: int
) -> None:
    """Keep the best of the sequences that ended before and of those that end now, for prompts that are still open."""
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


def _stay(job: DecodingJob, beams: Beams, step: int, limits: Sequence[int]) -> list[int]:
    """Prompts that continue: a running beam may still beat an ended sequence, and the length limit is not reached."""
    penalty, early = job.settings.length_penalty, job.settings.early_stop
    full_P = (beams.ended_sizes_PW > 0).all(1)
    lengths = [limit if early == "never" and penalty > 0 else step + 1 for limit in limits]
    divisor_P = torch.tensor([length**penalty for length in lengths], device=full_P.device)
    worst_PW = torch.where(beams.ended_sizes_PW > 0, beams.ended_PW.amin(1, keepdim=True), WORST)
    hope_P = ((beams.running_PW[:, :1] / divisor_P.unsqueeze(1)) > worst_PW).any(1)
    beams.open_P = beams.open_P & hope_P
    stay_P = beams.open_P & ~(full_P & (early is True))
    return [index for index, stays in enumerate(stay_P.tolist()) if stays and step + 1 < limits[index]]


def _rows(job: DecodingJob, beams: Beams, index: int, prompt: int, limit: int) -> list[Hypothesis]:
    """The best ended sequences of a prompt; there is always one unless its score is NaN."""
    rows = []
    for beam in range(job.settings.best):
        size = int(beams.ended_sizes_PW[index, beam])
        if size == 0:
            continue
        row = Hypothesis(prompt, limit, ids=beams.ended_ids_PWT[index, beam, :size].tolist())
        row.log_probs = beams.ended_chances_PWT[index, beam, :size].tolist()
        row.score = float(beams.ended_PW[index, beam])
        row.update_finish_reason(job.special, job.stop_check, job.settings)
        rows.append(row)
    if not rows:
        raise InputError(
            f"no continuation of prompt {prompt} has a finite score. "
            f"length_penalty is {job.settings.length_penalty:g}; use a value closer to 1, or check the weights."
        )
    return rows
