"""The layout of a batch: bounds, groups of equal length, slots of a cache."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.kernels.cases import SELF, H, K, layout_of

from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.grouped import explicit_group, in_groups
from regard.model.kernels.layout import Layout, Mask, SlotLayout

lengths = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)
few = settings(max_examples=100, deadline=None)


def edges(counts):
    return [0, *torch.tensor(counts, dtype=torch.int64).cumsum(0).tolist()]


def own(*counts):
    return Layout.for_self_attention(torch.tensor(edges(counts), dtype=torch.int32), max(counts, default=0))


def layout(pairs):
    q_edges, k_edges = (torch.tensor(edges(counts), dtype=torch.int32) for counts in zip(*pairs, strict=True))
    return Layout(q_edges, k_edges, max(q for q, _ in pairs), max(k for _, k in pairs))


@given(lengths)
@few
def test_every_sequence_with_queries_and_keys_is_in_exactly_one_group_of_its_size(pairs):
    groups = layout(pairs).groups
    assert sorted(row for group in groups for row in group.rows) == [b for b, (q, k) in enumerate(pairs) if q and k]
    assert all(pairs[row] == (group.queries, group.keys) for group in groups for row in group.rows)
    assert len({(group.queries, group.keys) for group in groups}) == len(groups)


@given(lengths)
@few
def test_the_order_lays_groups_end_to_end_and_back(pairs):
    made = layout(pairs)
    for order, edge in ((made.q_order, made.q_edges), (made.k_order, made.k_edges)):
        expected = [place for group in made.groups for row in group.rows for place in range(edge[row], edge[row + 1])]
        assert (list(range(edge[-1])) if order is None else order.tolist()) == expected
    if made.q_back is not None:
        laid = torch.cat([made.q_order, torch.tensor([-1])])
        owned = [pairs[row][1] > 0 for row, (q, _) in enumerate(pairs) for _ in range(q)]
        assert laid[made.q_back].tolist() == [place if has else -1 for place, has in enumerate(owned)]


@given(lengths)
@few
def test_places_of_a_group_count_from_the_end_of_the_keys(pairs):
    for group in layout(pairs).groups:
        row, query, key = group.positions
        assert row.flatten().tolist() == group.rows
        assert query.flatten().tolist() == list(range(group.keys - group.queries, group.keys))
        assert key.flatten().tolist() == list(range(group.keys))


def test_equal_lengths_side_by_side_need_no_copy():
    for counts in ((2, 2, 9), (9, 9, 2), (0, 2, 0, 9, 0), (4, 4, 4)):
        assert own(*counts).q_order is own(*counts).k_order is own(*counts).q_back is None
    assert own(9, 2, 9).q_order.tolist() == [*range(9), *range(11, 20), 9, 10]
    assert own(9, 2, 9).q_back.tolist() == [*range(9), 18, 19, *range(9, 18)]


def test_queries_without_keys_point_behind_the_results():
    made = Layout(torch.tensor([0, 2, 3]), torch.tensor([0, 0, 5]), 2, 5)
    assert made.q_back.tolist() == [1, 1, 0]


def test_spans_say_where_a_sequence_lies():
    assert own(2, 3).spans(1) == (slice(2, 5), slice(2, 5))
    slots = SlotLayout(torch.arange(3), torch.arange(3), 1, 4, torch.tensor([4, 2]), 6)
    assert slots.spans(1) == (slice(1, 2), slice(6, 8))


def test_the_mask_says_true_where_the_query_may_attend():
    query, key = torch.arange(4).view(-1, 1), torch.arange(4).view(1, -1)
    zero = torch.tensor(0)
    assert Mask().allows_all
    assert not Mask(right=0).allows_all
    assert torch.equal(Mask(right=0).allowed(zero, zero, query, key), torch.ones(4, 4).tril().bool())
    assert torch.equal(Mask(1, 1).allowed(zero, zero, query, key), (query - key).abs() <= 1)
    assert torch.equal(Mask(function=lambda b, h, q, k: k == 2).allowed(zero, zero, query, key), key == 2)
    assert Mask().allowed(zero, zero, query, torch.tensor([0, -1])).tolist() == [True, False]


# Sequences of equal length are computed together.


def test_there_is_one_group_for_each_length():
    calls = []

    def counted(q, k, v, call, group):
        calls.append((group.queries, len(group.rows)))
        return explicit_group(q, k, v, call, group)

    layout = layout_of(SELF)
    x = torch.randn(int(layout.q_bounds[-1]), H, K)
    assert in_groups(x, x, x, AttentionCall(layout), counted).shape == x.shape
    assert sorted(calls) == [(1, 1), (3, 2), (9, 1), (10, 1)]
