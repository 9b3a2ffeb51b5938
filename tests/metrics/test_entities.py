"""Entities are counted as conlleval (seqeval's default) and strict IOB2 (seqeval's strict mode) count them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import sequence_labeling as oracle
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2

from regard.errors import InputError
from regard.metrics.entities import entity_counts, entity_spans, token_hits

TAGS = ["O", "B-A", "I-A", "B-B", "I-B", "B-C-D", "I-C-D"]
tags = st.sampled_from(TAGS)
records = st.lists(st.lists(st.tuples(tags, tags), min_size=1, max_size=12), min_size=1, max_size=6)


@settings(deadline=None, max_examples=300)
@given(records, st.booleans())
def test_scores_as_seqeval_has_them(rows: list[list[tuple[str, str]]], strict: bool) -> None:
    predicted = [[ours for ours, _ in row] for row in rows]
    gold = [[theirs for _, theirs in row] for row in rows]
    result = entity_counts(predicted, gold, strict=strict)
    mode: dict[str, Any] = {"zero_division": 0}
    if strict:
        mode |= {"mode": "strict", "scheme": IOB2}
    averages = {
        "micro": result.counts().micro(),
        "macro": result.counts().macro(),
        "weighted": result.counts().weighted(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = oracle.classification_report(gold, predicted, output_dict=True, **mode)
        for name, average in averages.items():
            assert average.f1 == pytest.approx(
                oracle.f1_score(gold, predicted, average=name, **mode) if result.types else 0
            )
    for kind, part in result.per_type().items():
        assert part == pytest.approx({name.replace("f1-score", "f1"): value for name, value in each[kind].items()})


@given(st.lists(tags, max_size=15))
def test_lenient_spans_are_those_of_conlleval(options: list[str]) -> None:
    assert entity_spans(options) == [(first, last + 1, kind) for kind, first, last in get_entities(list(options))]


def test_the_two_ways_to_read_a_broken_sequence() -> None:
    broken = ["I-PER", "O", "B-LOC", "I-PER", "I-PER"]
    assert entity_spans(broken) == [(0, 1, "PER"), (2, 3, "LOC"), (3, 5, "PER")]
    assert entity_spans(broken, strict=True) == [(2, 3, "LOC")]


def test_words() -> None:
    assert token_hits(["NOUN", "VERB"], ["NOUN", "NOUN"]) == (1, 2)
    with pytest.raises(InputError, match="1 predicted tags for 2"):
        token_hits(["NOUN"], ["NOUN", "NOUN"])
    with pytest.raises(InputError, match="token accuracy"):
        entity_spans(["NOUN"])
    with pytest.raises(InputError, match="0 records of predicted tags for 1"):
        entity_counts([], [["O"]])
