"""Beam search token for token as transformers', n-best with scores, batched as single."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.generate.beam import top_candidates

SETTINGS = [
    ({"beams": 4}, {}),
    ({"beams": 3, "length_penalty": 2.0}, {"length_penalty": 2.0}),
    ({"beams": 3, "length_penalty": -1.0}, {"length_penalty": -1.0}),
    ({"beams": 4, "early_stop": True}, {"early_stopping": True}),
    ({"beams": 4, "early_stop": "never"}, {"early_stopping": "never"}),
    ({"beams": 4, "min_tokens": 6}, {"min_new_tokens": 6}),
    ({"beams": 2, "no_repeat": 2}, {"no_repeat_ngram_size": 2}),
    ({"beams": 2, "repetition_penalty": 1.4}, {"repetition_penalty": 1.4}),
]


@pytest.mark.parametrize(("ours", "theirs"), SETTINGS, ids=lambda value: str(value))
def test_beams_equal_transformers(both, prompts, ours, theirs):
    peer, model = both
    theirs = {**theirs, "num_beams": ours["beams"], "max_new_tokens": 14}
    if theirs.keys() & {"no_repeat_ngram_size", "repetition_penalty"} and not peer.both:
        expected = [peer([prompt], **theirs)[0] for prompt in prompts]  # there padding counts as said
    else:
        expected = peer(prompts, **theirs)
    assert model.generate_ids(prompts, max_tokens=14, **ours) == expected


def test_n_best_with_scores_equal_transformers(both, prompts):
    peer, model = both
    theirs = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 14}
    expected = peer(prompts, **theirs)
    scores = peer.scores(prompts, **theirs)
    results = [one for rows in model.continuations(prompts, max_tokens=14, beams=4, best=3) for one in rows]
    assert [list(one.ids) for one in results] == expected
    assert torch.allclose(torch.tensor([one.score for one in results]), scores, atol=1e-4)
    for one in results:
        assert len(one.log_probs) == len(one.ids)
        if model.writer.special.forced_last is None:
            assert one.score == pytest.approx(sum(one.log_probs) / len(one.ids), abs=1e-4)


@pytest.mark.parametrize("early", [False, True])
def test_batched_equals_single(both, prompts, early):
    _, model = both
    settings = {"max_tokens": 14, "beams": 3, "early_stop": early}
    assert model.generate_ids(prompts, **settings) == [model.generate_ids([one], **settings)[0] for one in prompts]


def test_several_ends(decoder, prompts):
    peer, model = decoder
    ends = [*model.writer.special.eos, 7]
    expected = peer(prompts, num_beams=3, max_new_tokens=12, eos_token_id=ends)
    writer = dataclasses.replace(model.writer, special=dataclasses.replace(model.writer.special, eos=tuple(ends)))
    result = writer.ids(prompts, {"beams": 3, "max_tokens": 12})
    assert result == [[*row[: cut_at(row, ends)]] for row in expected]


def cut_at(row, ends):
    return next((place + 1 for place, token in enumerate(row) if token in ends), len(row))


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 5), words=st.integers(1, 700), count=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_most_likely_words_are_those_of_topk(rows, words, count, seed):
    """Also where many are forbidden, and where the words do not go evenly into strands."""
    values = torch.randn(rows, words, generator=torch.Generator().manual_seed(seed))
    values[:, :: 1 + seed % 3] = float("-inf") if seed % 2 else -3.0
    best, result = top_candidates(values, min(count, words))
    assert torch.equal(best, values.topk(min(count, words)).values)
    assert torch.equal(values.gather(1, result), best)
    assert all(len(set(row)) == len(row) for row in result.tolist())
