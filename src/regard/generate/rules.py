"""What may come next, and how likely: rules over the scores of all words, one small function each.

Shapes: B sequences, V vocabulary, T places of the tokens so far. `ids_BT` is filled up with V, which is no word.
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
    """The tokens so far of every sequence: the prompt's and `new` of its own."""

    ids_BT: Tensor
    lengths_B: Tensor
    new: int  # how many were generated, the same for all
    max_new_tokens: Sequence[int]  # how many each may have at most
    prompts: Sequence[int]  # which prompt each continues

    @property
    def new_BT(self) -> Tensor:
        """(B, new) the generated tokens."""
        place_T = torch.arange(self.new, device=self.ids_BT.device)
        return self.ids_BT.gather(1, self.lengths_B.unsqueeze(1) - self.new + place_T)


Rule = Callable[[Tensor, RuleContext], Tensor]


def penalize_repetition(logits_BV: Tensor, seen: RuleContext, penalty: float) -> Tensor:
    """Scores of tokens that were seen are divided by the penalty, negative ones multiplied (Keskar et al. 2019)."""
    wide = F.pad(logits_BV, (0, 1))
    found = wide.gather(1, seen.ids_BT)
    found = torch.where(found < 0, found * penalty, found / penalty)
    return wide.scatter(1, seen.ids_BT, found)[:, :-1]


def forbid_repeats(logits_BV: Tensor, seen: RuleContext, size: int) -> Tensor:
    """No run of `size` tokens comes a second time."""
    ids_BT, lengths_B = seen.ids_BT, seen.lengths_B
    if ids_BT.shape[1] < size:
        return logits_BV
    runs_BWS = ids_BT.unfold(1, size, 1)
    place_S = torch.arange(1 - size, 0, device=ids_BT.device)
    tail_BS = ids_BT.gather(1, (lengths_B.unsqueeze(1) + place_S).clamp(min=0))
    same_BW = (runs_BWS[..., :-1] == tail_BS.unsqueeze(1)).all(-1) & (lengths_B >= size).unsqueeze(1)
    again_BW = torch.where(same_BW, runs_BWS[..., -1], logits_BV.shape[1])
    return F.pad(logits_BV, (0, 1)).scatter(1, again_BW, NEVER)[:, :-1]


def forbid_words(logits_BV: Tensor, seen: RuleContext, words: Sequence[Sequence[int]]) -> Tensor:
    """The last token of a word may not follow its first ones."""
    logits_BV = logits_BV.clone()
    for word in words:
        before = len(word) - 1
        if before == 0:
            logits_BV[:, word[0]] = NEVER
        elif before <= seen.ids_BT.shape[1]:
            place_S = torch.arange(-before, 0, device=logits_BV.device)
            tail_BS = seen.ids_BT.gather(1, (seen.lengths_B.unsqueeze(1) + place_S).clamp(min=0))
            hit_B = (tail_BS == tail_BS.new_tensor(word[:-1])).all(1) & (seen.lengths_B >= before)
            logits_BV[:, word[-1]] = logits_BV[:, word[-1]].masked_fill(hit_B, NEVER)
    return logits_BV


def forbid(logits_BV: Tensor, ids: Sequence[int]) -> Tensor:
    """None of these tokens."""
    return logits_BV.index_fill(1, torch.tensor(list(ids), device=logits_BV.device), NEVER)


def force(logits_BV: Tensor, token: int, rows: Sequence[int] | None = None) -> Tensor:
    """Only this token, in these rows."""
    index = slice(None) if rows is None else list(rows)
    logits_BV = logits_BV.clone()
    logits_BV[index] = NEVER
    logits_BV[index, token] = 0.0
    return logits_BV


def force_words(logits_BV: Tensor, seen: RuleContext, words: Sequence[Sequence[int]], stop: Sequence[int]) -> Tensor:
    """Each word comes before the end: when it has begun, when the end would come, or when there is room for no more."""
    likeliest = logits_BV.argmax(1).tolist()
    for row, new in enumerate(seen.new_BT.tolist()):
        pending = [word for word in words if not _holds(new, word)]
        if not pending:
            continue
        begun = {tuple(word): _begun(new, word) for word in pending}
        word = max(pending, key=lambda word: begun[tuple(word)])
        needed = sum(map(len, pending)) - begun[tuple(word)] + (1 if stop else 0)
        if begun[tuple(word)] or likeliest[row] in stop or seen.max_new_tokens[row] - seen.new <= needed:
            logits_BV = force(logits_BV, word[begun[tuple(word)]], [row])
    return logits_BV


def _holds(ids: list[int], word: Sequence[int]) -> bool:
    size = len(word)
    return any(ids[i : i + size] == list(word) for i in range(len(ids) - size + 1))


def _begun(ids: list[int], word: Sequence[int]) -> int:
    """How many of the word's first tokens stand at the end."""
    return next((size for size in range(len(word) - 1, 0, -1) if ids[-size:] == list(word[:size])), 0)


def constrain(logits_BV: Tensor, seen: RuleContext, settings: DecodingSettings) -> Tensor:
    """Only what the user's own function allows."""
    assert settings.constraint is not None
    bias_BV = torch.zeros_like(logits_BV)
    for row, new in enumerate(seen.new_BT.tolist()):
        allowed = settings.constraint(seen.prompts[row], new)
        if allowed is not None:
            chosen = torch.as_tensor(list(allowed), dtype=torch.int64, device=logits_BV.device)
            if chosen.numel() and not (int(chosen.min()) >= 0 and int(chosen.max()) < logits_BV.shape[1]):
                raise InputError(
                    f"the constraint allows an id outside 0 to {logits_BV.shape[1] - 1} after {seen.new} new tokens "
                    f"of prompt {seen.prompts[row]}."
                )
            bias_BV[row] = NEVER
            bias_BV[row, chosen] = 0.0
    return logits_BV + bias_BV


def keep_top_k(logits_BV: Tensor, k: int) -> Tensor:
    """The k likeliest, and what equals the last of them (Fan et al. 2018)."""
    least_B1 = logits_BV.topk(min(k, logits_BV.shape[1])).values[:, -1:]
    return logits_BV.masked_fill(logits_BV < least_B1, NEVER)


def keep_top_p(logits_BV: Tensor, share: float) -> Tensor:
    """The fewest likeliest that make up the share (Holtzman et al. 2020)."""
    sorted_BV, order_BV = logits_BV.sort()
    out_BV = sorted_BV.softmax(-1).cumsum(-1) <= 1 - share
    out_BV[:, -1] = False
    return logits_BV.masked_fill(out_BV.scatter(1, order_BV, out_BV), NEVER)


def keep_min_p(logits_BV: Tensor, share: float) -> Tensor:
    """Those with at least that share of the likeliest one's probability (Nguyen et al. 2024)."""
    chance_BV = logits_BV.softmax(-1)
    return logits_BV.masked_fill(chance_BV < share * chance_BV.amax(-1, keepdim=True), NEVER)


def keep_typical(logits_BV: Tensor, share: float) -> Tensor:
    """Those whose surprise is nearest to the expected one, making up the share (Meister et al. 2023)."""
    log_BV = logits_BV.log_softmax(-1)
    expected_B1 = -(log_BV * log_BV.exp()).nansum(-1, keepdim=True)
    far_BV, order_BV = (-log_BV - expected_B1).abs().sort()
    mass_BV = logits_BV.gather(1, order_BV).softmax(-1).cumsum(-1)
    last_B1 = (mass_BV < share).sum(1, keepdim=True).clamp(max=far_BV.shape[1] - 1)
    out_BV = far_BV > far_BV.gather(1, last_B1)
    out_BV[:, 0] = False
    return logits_BV.masked_fill(out_BV.scatter(1, order_BV, out_BV), NEVER)


def build_rules(
    settings: DecodingSettings,
    ends: SpecialIds,
    banned: Sequence[Sequence[int]] = (),
    forced: Sequence[Sequence[int]] = (),
) -> list[Rule]:
    """The rules the settings ask for, in the order in which they apply."""
    rules: list[Rule] = []
    if settings.repetition_penalty != 1.0:
        rules.append(lambda logits, seen: penalize_repetition(logits, seen, settings.repetition_penalty))
    if settings.no_repeat:
        rules.append(lambda logits, seen: forbid_repeats(logits, seen, settings.no_repeat))
    if banned:
        rules.append(lambda logits, seen: forbid_words(logits, seen, banned))
    if settings.min_tokens and ends.eos:
        least = settings.min_tokens
        rules.append(lambda logits, seen: forbid(logits, ends.eos) if seen.new < least else logits)
    if settings.constraint is not None:
        rules.append(lambda logits, seen: constrain(logits, seen, settings))
    if ends.forced_first is not None:
        first = ends.forced_first
        rules.append(lambda logits, seen: force(logits, first) if seen.new == 0 else logits)
    if forced:
        rules.append(lambda logits, seen: force_words(logits, seen, forced, ends.eos))
    if ends.forced_last is not None:
        last = ends.forced_last
        rules.append(lambda logits, seen: _force_last(logits, seen, last))
    return rules + _filters(settings)


def _force_last(logits_BV: Tensor, seen: RuleContext, token: int) -> Tensor:
    rows = [row for row, room in enumerate(seen.max_new_tokens) if seen.new == room - 1]
    return force(logits_BV, token, rows) if rows else logits_BV


def _filters(settings: DecodingSettings) -> list[Rule]:
    """What narrows a drawing."""
    if not settings.is_sampling:
        return []
    found: list[Rule] = []
    temperature, top_k, top_p = settings.temperature, settings.top_k, settings.top_p
    min_p, typical = settings.min_p, settings.typical
    if temperature is not None and temperature != 1.0:
        found.append(lambda logits, seen: logits / temperature)
    if top_k is not None:
        found.append(lambda logits, seen: keep_top_k(logits, top_k))
    if top_p is not None and top_p < 1.0:
        found.append(lambda logits, seen: keep_top_p(logits, top_p))
    if min_p is not None:
        found.append(lambda logits, seen: keep_min_p(logits, min_p))
    if typical is not None and typical < 1.0:
        found.append(lambda logits, seen: keep_typical(logits, typical))
    return found


def apply_rules(rules: Sequence[Rule], logits_BV: Tensor, seen: RuleContext) -> Tensor:
    """All rules, one after the other; an error where they leave a sequence no word at all."""
    for rule in rules:
        logits_BV = rule(logits_BV, seen)
    if rules:
        stuck_B = logits_BV.amax(1) == NEVER
        if bool(stuck_B.any()):
            row = int(stuck_B.long().argmax())
            raise InputError(
                f"nothing may follow the {seen.new} new tokens of prompt {seen.prompts[row]}: the constraints together "
                f"({setting('banned')}, {setting('no_repeat')}, {setting('min_tokens')}, the constraint function) "
                "forbid every word. Loosen one."
            )
    return logits_BV
