"""The inputs of Captum for a text."""

from __future__ import annotations

from typing import Any

import torch
from tests.look.tiny_models import TEXT

from regard.look.explain.explain import make_scorer


def inputs(ours: Any) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Ids, the baseline with all words masked, and the predicted class."""
    scorer: Any = make_scorer(ours, TEXT)
    ids = torch.tensor([scorer.text.sequences[0].ids])
    masked = torch.where(torch.tensor(scorer.text.erasable), ours.require_tokenizer().mask, ids)
    return ids, masked, scorer.target.number


def logits_of(theirs: Any) -> Any:
    return lambda ids: theirs(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
