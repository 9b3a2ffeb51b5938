"""Contrastive search: likely, and unlike what was said (Su et al. 2022).

Of the `top_k` likeliest words the one is taken whose probability, less the greatest likeness of its state to an earlier
one, is best. Shapes: B sequences, K candidates, T places, D width, V vocabulary.
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

DEFAULT_TOP_K = 4  # candidates where `top_k` is not given


def contrastive_search(job: DecodingJob, prompts: Sequence[Sequence[int]]) -> Iterator[list[Hypothesis]]:
    """All rows after every step; a row with a `why` has ended."""
    settings, count = job.settings, min(job.settings.top_k or DEFAULT_TOP_K, job.network.config.output_vocabulary)
    rows, starts = job.hypotheses(prompts), job.decoder_prompts(prompts)
    most = max(row.max_new_tokens for row in rows)
    cache = job.new_cache(prompts, starts, most)
    batch = Ragged.of(starts, device=job.device)
    states_ND = job.network.hidden_states(batch, cache)
    logits_BV = job.network.token_logits(states_ND[batch.last()])
    history = History(starts, most, job.network.config.output_vocabulary, job.device)
    said_BTD = _said(batch, states_ND, most)
    alive = list(range(len(rows)))
    for step in range(most):
        logits_BV = logits_BV.float()
        log_BV = logits_BV.log_softmax(-1)
        seen = history.rule_context(step, [rows[i].max_new_tokens for i in alive], [rows[i].prompt for i in alive])
        chance_BK, words_BK = apply_rules(job.rules, logits_BV, seen).softmax(-1).topk(count)
        cache.repeat(count)
        states_XD = job.network.hidden_states(single_token_batch(words_BK.flatten()), cache)
        likeness_BK = max_similarity(states_XD.unflatten(0, (-1, count)), said_BTD, history.lengths_B)
        assert settings.contrast is not None
        score_BK = (1 - settings.contrast) * chance_BK - settings.contrast * likeness_BK
        best_B = score_BK.masked_fill(chance_BK == 0, float("-inf")).argmax(1)
        next_B = words_BK.gather(1, best_B.unsqueeze(1)).squeeze(1)
        chances = log_BV.gather(1, next_B.unsqueeze(1)).squeeze(1).tolist()
        for place, (i, token) in enumerate(zip(alive, next_B.tolist(), strict=True)):
            if not math.isfinite(chances[place]):
                raise NotFinite(f"prompt {rows[i].prompt}")
            rows[i].ids.append(token)
            rows[i].log_probs.append(chances[place])
            rows[i].update_finish_reason(job.special, job.stop_check, settings)
        yield rows
        stay = [place for place, i in enumerate(alive) if rows[i].finish_reason is None]
        if not stay:
            return
        kept_B = torch.tensor(stay, device=job.device)
        chosen_B = kept_B * count + best_B[kept_B]
        cache.select(chosen_B, sequences_per_source=1)
        states_BD = states_XD[chosen_B]
        said_BTD = said_BTD[kept_B].scatter(
            1, history.lengths_B[kept_B].view(-1, 1, 1).expand(-1, 1, said_BTD.shape[-1]), states_BD.unsqueeze(1)
        )
        history.add(next_B)
        history.select(kept_B)
        alive = [alive[place] for place in stay]
        logits_BV = job.network.token_logits(states_BD)


def _said(batch: Ragged, states_ND: Tensor, more: int) -> Tensor:
    """(B, T, D) the states of the prompts, with places for `more`."""
    said_BTD = states_ND.new_zeros(len(batch), batch.max_length + more, states_ND.shape[1])
    said_BTD[batch.sequence_ids, batch.positions] = states_ND
    return said_BTD


def max_similarity(states_BKD: Tensor, said_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """(B, K) the greatest cosine of each candidate's state with an earlier one."""
    cosine_BKT = F.normalize(states_BKD.float(), dim=-1) @ F.normalize(said_BTD.float(), dim=-1).transpose(1, 2)
    place_T = torch.arange(said_BTD.shape[1], device=said_BTD.device)
    return cosine_BKT.masked_fill((place_T >= lengths_B.unsqueeze(1)).unsqueeze(1), float("-inf")).amax(-1)
