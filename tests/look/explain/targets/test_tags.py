"""Tags of words."""

from __future__ import annotations

import pytest
import torch
from tests.look.tiny_models import TEXT, model

from regard.ragged import Ragged


@torch.no_grad()
def test_the_value_of_a_tag_is_the_logit_at_the_first_token_of_its_word() -> None:
    loaded = model("tiny-bert", {"token": 3})
    explanation = loaded.explain(TEXT, target="windows=B-PER", method="random")
    encoding = loaded.require_tokenizer().encode(TEXT)
    position = next(i for i, (start, _) in enumerate(encoding.offsets) if start == TEXT.index("windows"))
    logits = loaded.network(Ragged.of([encoding.ids])).logits[position]
    assert explanation.target.positions == (position,)
    assert explanation.value == pytest.approx(float(logits[1]), abs=1e-5)
    assert explanation.probability == pytest.approx(float(logits.softmax(-1)[1]), abs=1e-6)
    several = loaded.explain(TEXT, target="the soup=PER", method="random")
    assert len(several.target.positions) == 2
