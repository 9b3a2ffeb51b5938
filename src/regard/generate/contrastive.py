"""Contrastive search: tokens that are likely, and unlike the text so far (Su et al. 2022).

It works as follows:
1. The `top_k` most likely next tokens are the candidates.
2. The network reads each of them, which gives its hidden state.
3. A candidate scores (1 - contrast) * probability - contrast * the highest cosine similarity of its hidden state with
   any earlier one; the best candidate is taken. A repetition has a state like an earlier one, and so scores low.

Shapes: B sequences, K candidates, T positions, D width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.errors import NotFinite
from regard.generate.history import History
from regard.generate.loop import DecodingJob, Hypothesis
from regard.generate.rules import apply_rules
from regard.model.kernels.decode_graphs import single_token_batch
from regard.ragged import Ragged

DEFAULT_TOP_K = 4  # candidates if `top_k` is not given


def contrastive_search(job: DecodingJob, prompts: Sequence[Sequence[int]]) -> Iterator[list[Hypothesis]]:
    """Yields all hypotheses after every step; one with a `finish_reason` has ended."""
    count = min(job.settings.top_k or DEFAULT_TOP_K, job.network.config.output_vocabulary)
    hypotheses = job.hypotheses(prompts)
    starts = job.decoder_prompts(prompts)
    max_new_tokens = max(row.max_new_tokens for row in hypotheses)
    cache = job.new_cache(prompts, starts, max_new_tokens)
    batch = Ragged.of(starts, device=job.device)
    states_ND = job.network.hidden_states(batch, cache)
    logits_BV = job.network.token_logits(states_ND[batch.last()])
    history = History(starts, max_new_tokens, job.network.config.output_vocabulary, job.device)
    past_BTD = _past_states(batch, states_ND, max_new_tokens)
    alive = list(range(len(hypotheses)))
    for step in range(max_new_tokens):
        logits_BV = logits_BV.float()
        log_BV = logits_BV.log_softmax(-1)
        rows = [hypotheses[i] for i in alive]
        context = history.rule_context(step, [row.max_new_tokens for row in rows], [row.prompt for row in rows])
        chance_BK, tokens_BK = apply_rules(job.rules, logits_BV, context).softmax(-1).topk(count)
        cache.repeat(count)
        states_XD = job.network.hidden_states(single_token_batch(tokens_BK.flatten()), cache)
        similarity_BK = max_similarity(states_XD.unflatten(0, (-1, count)), past_BTD, history.lengths_B)
        best_B = _best_candidate(job, chance_BK, similarity_BK)
        next_B = tokens_BK.gather(1, best_B.unsqueeze(1)).squeeze(1)
        _append(job, rows, next_B, log_BV)
        yield hypotheses
        stay = [index for index, row in enumerate(rows) if row.finish_reason is None]
        if not stay:
            return
        stay_B = torch.tensor(stay, device=job.device)
        chosen_B = stay_B * count + best_B[stay_B]
        cache.select(chosen_B, sequences_per_source=1)
        states_BD = states_XD[chosen_B]
        past_BTD = _add_state(past_BTD[stay_B], states_BD, history.lengths_B[stay_B])
        history.add(next_B)
        history.select(stay_B)
        alive = [alive[index] for index in stay]
        logits_BV = job.network.token_logits(states_BD)


def _best_candidate(job: DecodingJob, chance_BK: Tensor, similarity_BK: Tensor) -> Tensor:
    """(B,) the candidate with the best score; those that a rule forbids have the probability 0 and are never taken."""
    contrast = job.settings.contrast
    assert contrast is not None
    score_BK = (1 - contrast) * chance_BK - contrast * similarity_BK
    return score_BK.masked_fill(chance_BK == 0, float("-inf")).argmax(1)


def _append(job: DecodingJob, rows: Sequence[Hypothesis], next_B: Tensor, log_BV: Tensor) -> None:
    """Add the next token of every sequence to its hypothesis."""
    log_probs = log_BV.gather(1, next_B.unsqueeze(1)).squeeze(1).tolist()
    for row, token, log_prob in zip(rows, next_B.tolist(), log_probs, strict=True):
        if not math.isfinite(log_prob):
            raise NotFinite(f"prompt {row.prompt}")
        row.ids.append(token)
        row.log_probs.append(log_prob)
        row.update_finish_reason(job.special, job.stop_check, job.settings)


def _past_states(batch: Ragged, states_ND: Tensor, more: int) -> Tensor:
    """(B, T, D) the hidden states of the prompts, with empty positions for `more` tokens."""
    past_BTD = states_ND.new_zeros(len(batch), batch.max_length + more, states_ND.shape[1])
    past_BTD[batch.sequence_ids, batch.positions] = states_ND
    return past_BTD


def _add_state(past_BTD: Tensor, states_BD: Tensor, lengths_B: Tensor) -> Tensor:
    """The earlier states with the new one behind each."""
    position_B1D = lengths_B.view(-1, 1, 1).expand(-1, 1, past_BTD.shape[-1])
    return past_BTD.scatter(1, position_B1D, states_BD.unsqueeze(1))


def max_similarity(states_BKD: Tensor, past_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """(B, K) the highest cosine similarity of each candidate's state with an earlier one."""
    cosine_BKT = F.normalize(states_BKD.float(), dim=-1) @ F.normalize(past_BTD.float(), dim=-1).transpose(1, 2)
    position_T = torch.arange(past_BTD.shape[1], device=past_BTD.device)
    return cosine_BKT.masked_fill((position_T >= lengths_B.unsqueeze(1)).unsqueeze(1), float("-inf")).amax(-1)
