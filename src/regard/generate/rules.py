"""Rules that change the logits before the next token is chosen: penalties, forbidden and forced tokens, filters.

Each rule is one small function from logits to logits; a forbidden token gets the logit -inf.
Shapes: B sequences, V vocabulary, T positions of the tokens so far. `ids_BT` is padded with V, which is no token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.errors import InputError, setting
from regard.generate.settings import DecodingSettings, SpecialIds

NEVER = float("-inf")


@dataclass(frozen=True, eq=False)
class RuleContext:
    """What rules know about every sequence: its tokens so far, of the prompt and `new` generated ones."""

    ids_BT: Tensor
    lengths_B: Tensor
    new: int  # generated tokens, the same for all sequences
    max_new_tokens: Sequence[int]  # limit of each sequence
    prompts: Sequence[int]  # number of the prompt of each sequence

    @property
    def new_BT(self) -> Tensor:
        """(B, new) the generated tokens."""
        place_T = torch.arange(self.new, device=self.ids_BT.device)
        return self.ids_BT.gather(1, self.lengths_B.unsqueeze(1) - self.new + place_T)


Rule = Callable[[Tensor, RuleContext], Tensor]


def penalize_repetition(logits_BV: Tensor, context: RuleContext, penalty: float) -> Tensor:
    """Divide the logits of tokens that occurred by the penalty, multiply negative ones by it (Keskar et al. 2019)."""
    wide = F.pad(logits_BV, (0, 1))
    values = wide.gather(1, context.ids_BT)
    values = torch.where(values < 0, values * penalty, values / penalty)
    return wide.scatter(1, context.ids_BT, values)[:, :-1]


def forbid_repeats(logits_BV: Tensor, context: RuleContext, size: int) -> Tensor:
    """No n-gram of `size` tokens occurs twice (Paulus et al. 2018): tokens that would complete one are forbidden."""
    ids_BT, lengths_B = context.ids_BT, context.lengths_B
    if ids_BT.shape[1] < size:
        return logits_BV
    runs_BWS = ids_BT.unfold(1, size, 1)
    place_S = torch.arange(1 - size, 0, device=ids_BT.device)
    tail_BS = ids_BT.gather(1, (lengths_B.unsqueeze(1) + place_S).clamp(min=0))
    same_BW = (runs_BWS[..., :-1] == tail_BS.unsqueeze(1)).all(-1) & (lengths_B >= size).unsqueeze(1)
    again_BW = torch.where(same_BW, runs_BWS[..., -1], logits_BV.shape[1])
    return F.pad(logits_BV, (0, 1)).scatter(1, again_BW, NEVER)[:, :-1]


def forbid_words(logits_BV: Tensor, context: RuleContext, words: Sequence[Sequence[int]]) -> Tensor:
    """Forbid words of one or more tokens: the last token may not follow the tokens before it."""
    logits_BV = logits_BV.clone()
    for word in words:
        before = len(word) - 1
        if before == 0:
            logits_BV[:, word[0]] = NEVER
        elif before <= context.ids_BT.shape[1]:
            place_S = torch.arange(-before, 0, device=logits_BV.device)
            tail_BS = context.ids_BT.gather(1, (context.lengths_B.unsqueeze(1) + place_S).clamp(min=0))
            hit_B = (tail_BS == tail_BS.new_tensor(word[:-1])).all(1) & (context.lengths_B >= before)
            logits_BV[:, word[-1]] = logits_BV[:, word[-1]].masked_fill(hit_B, NEVER)
    return logits_BV


def forbid(logits_BV: Tensor, ids: Sequence[int]) -> Tensor:
    """Forbid these tokens."""
    return logits_BV.index_fill(1, torch.tensor(list(ids), device=logits_BV.device), NEVER)


def force(logits_BV: Tensor, token: int, rows: Sequence[int] | None = None) -> Tensor:
    """Allow only this token, in the given rows or in all."""
    index = slice(None) if rows is None else list(rows)
    logits_BV = logits_BV.clone()
    logits_BV[index] = NEVER
    logits_BV[index, token] = 0.0
    return logits_BV


def force_words(logits_BV: Tensor, context: RuleContext, words: Sequence[Sequence[int]], stop: Sequence[int]) -> Tensor:
    """Force every word to occur: once it has started, before the end token, or when the length limit is near."""
    top_tokens = logits_BV.argmax(1).tolist()
    for row, new in enumerate(context.new_BT.tolist()):
        pending = [word for word in words if not _holds(new, word)]
        if not pending:
            continue
        started = {tuple(word): _started_tokens(new, word) for word in pending}
        word = max(pending, key=lambda word: started[tuple(word)])
        needed = sum(map(len, pending)) - started[tuple(word)] + (1 if stop else 0)
        if started[tuple(word)] or top_tokens[row] in stop or context.max_new_tokens[row] - context.new <= needed:
            logits_BV = force(logits_BV, word[started[tuple(word)]], [row])
    return logits_BV


def _holds(ids: list[int], word: Sequence[int]) -> bool:
    size = len(word)
    return any(ids[i : i + size] == list(word) for i in range(len(ids) - size + 1))


def _started_tokens(ids: list[int], word: Sequence[int]) -> int:
    """How many of the word's first tokens are at the end of the ids."""
    return next((size for size in range(len(word) - 1, 0, -1) if ids[-size:] == list(word[:size])), 0)


def constrain(logits_BV: Tensor, context: RuleContext, settings: DecodingSettings) -> Tensor:
    """Allow only the tokens that the user's constraint function returns."""
    assert settings.constraint is not None
    bias_BV = torch.zeros_like(logits_BV)
    for row, new in enumerate(context.new_BT.tolist()):
        allowed = settings.constraint(context.prompts[row], new)
        if allowed is not None:
            chosen = torch.as_tensor(list(allowed), dtype=torch.int64, device=logits_BV.device)
            if chosen.numel() and not (int(chosen.min()) >= 0 and int(chosen.max()) < logits_BV.shape[1]):
                raise InputError(
                    f"the constraint allows an id outside 0 to {logits_BV.shape[1] - 1} after {context.new} new tokens "
                    f"of prompt {context.prompts[row]}."
                )
            bias_BV[row] = NEVER
            bias_BV[row, chosen] = 0.0
    return logits_BV + bias_BV


def keep_top_k(logits_BV: Tensor, k: int) -> Tensor:
    """Top-k: keep the k most likely tokens, and ties with the last of them (Fan et al. 2018)."""
    least_B1 = logits_BV.topk(min(k, logits_BV.shape[1])).values[:, -1:]
    return logits_BV.masked_fill(logits_BV < least_B1, NEVER)


def keep_top_p(logits_BV: Tensor, fraction: float) -> Tensor:
    """Top-p (nucleus): keep the fewest most likely tokens whose probabilities sum to it (Holtzman et al. 2020)."""
    sorted_BV, order_BV = logits_BV.sort()
    out_BV = sorted_BV.softmax(-1).cumsum(-1) <= 1 - fraction
    out_BV[:, -1] = False
    return logits_BV.masked_fill(out_BV.scatter(1, order_BV, out_BV), NEVER)


def keep_min_p(logits_BV: Tensor, fraction: float) -> Tensor:
    """Min-p: keep tokens with at least this fraction of the highest probability (Nguyen et al. 2024)."""
    chance_BV = logits_BV.softmax(-1)
    return logits_BV.masked_fill(chance_BV < fraction * chance_BV.amax(-1, keepdim=True), NEVER)


def build_rules(
    settings: DecodingSettings,
    ends: SpecialIds,
    banned: Sequence[Sequence[int]] = (),
    forced: Sequence[Sequence[int]] = (),
) -> list[Rule]:
    """The rules that the settings need, in the order in which they apply."""
    rules: list[Rule] = []
    if settings.repetition_penalty != 1.0:
        rules.append(lambda logits, context: penalize_repetition(logits, context, settings.repetition_penalty))
    if settings.no_repeat:
        rules.append(lambda logits, context: forbid_repeats(logits, context, settings.no_repeat))
    if banned:
        rules.append(lambda logits, context: forbid_words(logits, context, banned))
    if settings.min_tokens and ends.eos:
        min_tokens = settings.min_tokens
        rules.append(lambda logits, context: forbid(logits, ends.eos) if context.new < min_tokens else logits)
    if settings.constraint is not None:
        rules.append(lambda logits, context: constrain(logits, context, settings))
    if ends.forced_first is not None:
        first = ends.forced_first
        rules.append(lambda logits, context: force(logits, first) if context.new == 0 else logits)
    if forced:
        rules.append(lambda logits, context: force_words(logits, context, forced, ends.eos))
    if ends.forced_last is not None:
        last = ends.forced_last
        rules.append(lambda logits, context: _force_last(logits, context, last))
    return rules + _filters(settings)


def _force_last(logits_BV: Tensor, context: RuleContext, token: int) -> Tensor:
    rows = [row for row, limit in enumerate(context.max_new_tokens) if context.new == limit - 1]
    return force(logits_BV, token, rows) if rows else logits_BV


def _filters(settings: DecodingSettings) -> list[Rule]:
    """The filters of sampling: temperature, top-k, top-p, min-p."""
    if not settings.is_sampling:
        return []
    values: list[Rule] = []
    temperature, top_k, top_p, min_p = settings.temperature, settings.top_k, settings.top_p, settings.min_p
    if temperature is not None and temperature != 1.0:
        values.append(lambda logits, context: logits / temperature)
    if top_k is not None:
        values.append(lambda logits, context: keep_top_k(logits, top_k))
    if top_p is not None and top_p < 1.0:
        values.append(lambda logits, context: keep_top_p(logits, top_p))
    if min_p is not None:
        values.append(lambda logits, context: keep_min_p(logits, min_p))
    return values


def apply_rules(rules: Sequence[Rule], logits_BV: Tensor, context: RuleContext) -> Tensor:
    """Apply all rules in order; an error if they forbid every token of a sequence."""
    for rule in rules:
        logits_BV = rule(logits_BV, context)
    if rules:
        stuck_B = logits_BV.amax(1) == NEVER
        if bool(stuck_B.any()):
            row = int(stuck_B.long().argmax())
            raise InputError(
                f"no token is allowed after {context.new} new tokens of prompt {context.prompts[row]}: the settings "
                f"({setting('banned')}, {setting('no_repeat')}, {setting('min_tokens')}, the constraint function) "
                "together forbid every token. Relax one of them."
            )
    return logits_BV
