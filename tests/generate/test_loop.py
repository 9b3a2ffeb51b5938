"""Greedy decoding and sampling: as transformers, batched as single, cached as uncached."""

import dataclasses

import pytest
import torch

from regard.generate.loop import DecodingJob, sample
from regard.generate.settings import SpecialIds
from regard.ragged import Ragged


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"min_tokens": 9}, {"min_new_tokens": 9}),
        ({"repetition_penalty": 1.7}, {"repetition_penalty": 1.7}),
        ({"no_repeat": 2}, {"no_repeat_ngram_size": 2}),
    ],
    ids=["plain", "min", "penalty", "no repeat"],
)
def test_greedy_equals_transformers(both, prompts, ours, theirs):
    peer, model = both
    if ours.keys() & {"repetition_penalty", "no_repeat"} and not peer.both:
        expected = [
            peer([prompt], max_new_tokens=20, **theirs)[0] for prompt in prompts
        ]  # there padding counts as said
    else:
        expected = peer(prompts, max_new_tokens=20, **theirs)
    assert model.generate_ids(prompts, max_tokens=20, **ours) == expected


def test_the_finish_reason_is_reported(both, prompts):
    _, model = both
    results = [rows[0] for rows in model.continuations(prompts, max_tokens=20)]
    forced = model.writer.special.forced_last is not None
    assert {row.finish_reason for row in results} == ({"end"} if forced else {"end", "length"})
    assert len({len(row.ids) for row in results}) > 1
    for row in results:
        assert (row.ids[-1] in model.writer.special.eos) == (row.finish_reason == "end")
        assert len(row.ids) == 20 or row.finish_reason == "end"


@pytest.mark.parametrize("settings", [{}, {"top_p": 0.9, "seed": 3}, {"top_k": 5, "temperature": 2.0, "seed": 1}])
def test_batched_equals_single(both, prompts, settings):
    _, model = both
    together = model.generate_ids(prompts, max_tokens=20, **settings)
    assert together == [model.generate_ids([prompt], max_tokens=20, **settings)[0] for prompt in prompts]


def uncached(model, prompt, tokens):
    """Greedy decoding that reads the whole sequence anew for every token."""
    network, special = model.network, model.writer.special
    source = [prompt] if network.encoder is not None else None
    ids = [special.decoder_start] if source else list(prompt)
    start = len(ids)
    while len(ids) - start < tokens:
        output = network(Ragged.of([ids])) if source is None else network(Ragged.of(source), Ragged.of([ids]))
        last = special.forced_last is not None and len(ids) - start == tokens - 1
        ids.append(special.forced_last if last else int(output.logits[-1].argmax()))
        if ids[-1] in special.eos:
            break
    return ids[start:]


@torch.no_grad()
def test_cached_equals_uncached(both, prompts):
    _, model = both
    expected = [uncached(model, prompt, 15) for prompt in prompts]
    assert model.generate_ids(prompts, max_tokens=15) == expected


def test_seeds(decoder, prompts):
    _, model = decoder
    one = model.generate_ids(prompts, max_tokens=12, sample=True, seed=0)
    assert one == model.generate_ids(prompts, max_tokens=12, sample=True, seed=0)
    assert one != model.generate_ids(prompts, max_tokens=12, sample=True, seed=1)
    assert one[1:] == model.generate_ids(prompts, max_tokens=12, sample=True, seed=[5, 0, 0, 0])[1:]
    longer = model.generate_ids(prompts, max_tokens=40, sample=True, seed=0)
    assert [row[:12] for row in longer] == one


def test_several_samples_of_a_prompt_differ_and_the_first_is_the_only_one(decoder, prompts):
    _, model = decoder
    result = model.continuations(prompts, max_tokens=12, sample=True, seed=0, best=3)
    assert [len(rows) for rows in result] == [3] * len(prompts)
    assert all(len({row.ids for row in rows}) == 3 for rows in result)
    assert [list(rows[0].ids) for rows in result] == model.generate_ids(prompts, max_tokens=12, sample=True, seed=0)


def test_samples_follow_the_probabilities():
    logits = torch.tensor([[0.0, 1.0, float("-inf"), 2.0, -1.0]])
    sampled = torch.rand(40000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    counts = torch.bincount(sample(logits.expand(40000, -1), sampled), minlength=5) / 40000
    assert counts[2] == 0
    assert torch.allclose(counts, logits.softmax(-1)[0], atol=0.01)


def test_the_highest_random_number_still_samples_a_token():
    logits = torch.tensor([[0.0, 1.0, float("-inf")]])
    top = torch.tensor([1 - 2**-53], dtype=torch.float64)
    assert sample(logits, top).tolist() == [1]
    assert sample(logits, top * 0).tolist() == [0]


@torch.no_grad()
def test_log_probabilities_are_those_of_the_network(decoder, prompts):
    _, model = decoder
    for prompt, (result,) in zip(prompts, model.continuations(prompts, max_tokens=9, top_k=3, seed=0), strict=True):
        logits = model.network(Ragged.of([prompt + list(result.ids)])).logits[len(prompt) - 1 : -1]
        expected = logits.log_softmax(-1).gather(1, torch.tensor(result.ids).unsqueeze(1)).squeeze(1)
        assert torch.allclose(torch.tensor(result.log_probs), expected, atol=1e-4)
        assert result.score == pytest.approx(sum(result.log_probs))


def test_a_sequence_that_has_ended_makes_no_place_for_others_scarce(decoder, prompts):
    """In fixed shapes it stays among those that go on, up to the end of its context."""
    _, model = decoder
    long, others = [5] * (model.config.max_tokens - 3), prompts[:1] * 3
    plain = model.writer.ids([long, *others], {"max_tokens": 20})
    special = SpecialIds(eos=(next(token for token in plain[0] if token not in plain[1]),))
    expected = dataclasses.replace(model.writer, special=special).ids([long, *others], {"max_tokens": 20})
    result = dataclasses.replace(model.writer, special=special, fixed_shapes=True).ids(
        [long, *others], {"max_tokens": 20}
    )
    assert result == expected
    assert len(expected[0]) < 3
    assert len(expected[1]) == 20


def test_no_more_is_kept_than_the_context_holds(decoder, prompts, monkeypatch):
    _, model = decoder
    remaining = []
    begin = type(model.network).new_cache
    monkeypatch.setattr(
        type(model.network),
        "new_cache",
        lambda *arguments, **options: remaining.append(options["capacity"]) or begin(*arguments, **options),
    )
    special = SpecialIds()
    (result,) = dataclasses.replace(model.writer, special=special).ids(prompts[:1], {"max_tokens": 200, "slide": True})
    assert len(result) == 200
    assert set(remaining) == {model.config.max_tokens}


@pytest.mark.parametrize("settings", [{}, {"beams": 3}, {"sample": True, "seed": 2}, {"repetition_penalty": 1.3}])
def test_fixed_shapes_as_a_gpu_records_them_change_nothing(both, prompts, settings, monkeypatch):
    _, model = both
    prompts = [*prompts, [3] * 50]
    expected = model.continuations(prompts, max_tokens=20, **settings)
    plain = DecodingJob.stepper
    monkeypatch.setattr(
        DecodingJob, "stepper", lambda job, cache: plain(dataclasses.replace(job, fixed_shapes=True), cache)
    )
    result = model.continuations(prompts, max_tokens=20, **settings)
    assert [[(one.ids, one.finish_reason) for one in rows] for rows in result] == [
        [(one.ids, one.finish_reason) for one in rows] for rows in expected
    ]
