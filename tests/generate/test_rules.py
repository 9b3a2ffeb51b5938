"""Every rule against transformers' own, exactly, and what it does where they have none."""

from typing import Any

import pytest
import torch
from tests.references import transformers

from regard.errors import InputError
from regard.generate import rules
from regard.generate.settings import DecodingSettings, SpecialIds

V, LENGTHS, NEW = 40, [12, 3, 30, 1], 1


def scores():
    return torch.randn(len(LENGTHS), V, generator=torch.Generator().manual_seed(0)) * 3


def histories():
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(0, 6, (length,), generator=generator) for length in LENGTHS]


def rule_context(rows, new=NEW, size=99):
    ids = torch.full((len(rows), max(map(len, rows))), V)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    lengths = torch.tensor([len(row) for row in rows])
    return rules.RuleContext(ids, lengths, new, [size] * len(rows), list(range(len(rows))))


def applied(settings, ends=None, logits=None, **more):
    return rules.apply_rules(
        rules.build_rules(settings, ends or SpecialIds(), **more),
        scores() if logits is None else logits,
        rule_context(histories()),
    )


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        ({"temperature": 0.7}, lambda: transformers.TemperatureLogitsWarper(0.7)),
        ({"top_k": 7}, lambda: transformers.TopKLogitsWarper(7)),
        ({"top_k": 99}, lambda: transformers.TopKLogitsWarper(99)),
        ({"top_p": 0.8}, lambda: transformers.TopPLogitsWarper(0.8)),
        ({"top_p": 0.01}, lambda: transformers.TopPLogitsWarper(0.01)),
        ({"min_p": 0.1}, lambda: transformers.MinPLogitsWarper(0.1)),
        ({"repetition_penalty": 1.3}, lambda: transformers.RepetitionPenaltyLogitsProcessor(1.3)),
        ({"no_repeat": 1}, lambda: transformers.NoRepeatNGramLogitsProcessor(1)),
        ({"no_repeat": 2}, lambda: transformers.NoRepeatNGramLogitsProcessor(2)),
        ({"no_repeat": 3}, lambda: transformers.NoRepeatNGramLogitsProcessor(3)),
    ],
    ids=lambda value: " ".join(map(str, next(iter(value.items())))).split("<")[0] if isinstance(value, dict) else "",
)
def test_rules_equal_transformers(settings, theirs):
    ours, theirs = applied(DecodingSettings(**settings)), theirs()
    for row, ids in enumerate(histories()):
        expected = theirs(ids.unsqueeze(0), scores()[row : row + 1].clone())
        assert torch.equal(ours[row : row + 1], expected)


def test_a_constraint_equals_transformers():
    ours = applied(DecodingSettings(constraint=lambda row, ids: [row, 5]))
    for row, ids in enumerate(histories()):
        theirs = transformers.PrefixConstrainedLogitsProcessor(lambda batch, ids, row=row: [row, 5], 1)
        assert torch.equal(ours[row : row + 1], theirs(ids.unsqueeze(0), scores()[row : row + 1].clone()))


def test_all_filters_together_in_their_order():
    settings: dict[str, Any] = {"temperature": 1.4, "top_k": 20, "top_p": 0.9, "min_p": 0.02}
    ours = applied(DecodingSettings(**settings))
    expected = scores()
    processors: tuple[Any, ...] = (
        transformers.TemperatureLogitsWarper(1.4),
        transformers.TopKLogitsWarper(20),
        transformers.TopPLogitsWarper(0.9),
        transformers.MinPLogitsWarper(0.02),
    )
    for theirs in processors:
        expected = theirs(None, expected)
    assert torch.equal(ours, expected)


def test_banned_words_equal_transformers():
    words = [[3], [1, 2], [0, 4, 5], [5, 5]]
    ours = applied(DecodingSettings(), banned=words)
    for row, ids in enumerate(histories()):
        theirs = transformers.NoBadWordsLogitsProcessor(words, eos_token_id=torch.tensor([39]))
        assert torch.equal(ours[row : row + 1], theirs(ids.unsqueeze(0), scores()[row : row + 1].clone()))


def test_no_end_before_the_minimum_length():
    theirs = transformers.MinNewTokensLengthLogitsProcessor(LENGTHS[0] - NEW, 4, torch.tensor([2, 7]))
    ours = applied(DecodingSettings(min_tokens=4), SpecialIds(eos=(2, 7)))
    assert torch.equal(ours[:1], theirs(histories()[0].unsqueeze(0), scores()[:1]))
    assert not torch.isinf(applied(DecodingSettings(min_tokens=1), SpecialIds(eos=(2, 7)))).any()


def test_a_constraint_may_leave_a_row_alone():
    ours = applied(DecodingSettings(constraint=lambda row, ids: None if row else [3]))
    assert torch.equal(ours[1:], scores()[1:])
    assert ours[0].isfinite().nonzero().tolist() == [[3]]


def test_a_constraint_sees_only_what_is_new():
    options = {}
    applied(DecodingSettings(constraint=lambda row, ids: options.update({row: ids})))
    assert options == {row: ids[-NEW:].tolist() for row, ids in enumerate(histories())}


@pytest.mark.parametrize("allowed", [[], [V], [-1]])
def test_a_constraint_that_leaves_nothing_is_named(allowed):
    with pytest.raises(InputError, match="constraint"):
        applied(DecodingSettings(constraint=lambda row, ids: allowed))


def test_nothing_left_names_the_rules():
    with pytest.raises(InputError, match=r"no token is allowed after 1 new tokens of prompt 0: .*banned.*Relax one"):
        applied(DecodingSettings(), banned=[[word] for word in range(V)])
