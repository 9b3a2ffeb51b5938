"""Random scores."""

from __future__ import annotations

from tests.look.tiny_models import TEXT, model


def test_scores_depend_on_the_seed_and_the_text_only() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    first, again, other = (loaded.explain(TEXT, method="random", seed=seed).token_scores for seed in (0, 0, 1))
    assert first == again != other
    assert first[0] == first[-1] == 0  # special tokens
