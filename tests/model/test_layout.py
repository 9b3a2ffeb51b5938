import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.model.layout import Layout, Mask, Slots, plan

CPU = torch.device("cpu")
lengths = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)
few = settings(max_examples=100, deadline=None)


def edges(counts):
    return [0, *torch.tensor(counts, dtype=torch.int64).cumsum(0).tolist()]


def own(*counts):
    return Layout.own(torch.tensor(edges(counts), dtype=torch.int32), max(counts, default=0))


@given(lengths)
@few
def test_every_sequence_with_queries_and_keys_is_in_exactly_one_group(pairs):
    groups = plan(edges([q for q, _ in pairs]), edges([k for _, k in pairs]), CPU)
    placed = sorted(row for group in groups for row in group.rows)
    assert placed == [b for b, (q, k) in enumerate(pairs) if q and k]


@given(lengths)
@few
def test_no_row_is_padded_by_more_than_an_eighth_of_its_own_length(pairs):
    for group in plan(edges([q for q, _ in pairs]), edges([k for _, k in pairs]), CPU):
        for own_lengths in (group.q_lengths, group.k_lengths):
            assert all(max(own_lengths) - length <= length / 8 for length in own_lengths)


@given(lengths)
@few
def test_a_group_holds_the_rows_of_its_sequences_and_marks_its_padding(pairs):
    q_edges, k_edges = edges([q for q, _ in pairs]), edges([k for _, k in pairs])
    queries, keys = torch.arange(q_edges[-1]), torch.arange(k_edges[-1])
    for group in plan(q_edges, k_edges, CPU):
        taken_q, taken_k = group.take_q(queries), group.take_k(keys)
        _, q_places, k_places = (place.expand(len(group.rows), 1, -1, -1) for place in group.places)
        for i, b in enumerate(group.rows):
            t, s = pairs[b]
            assert taken_q[i, :t].tolist() == list(range(q_edges[b], q_edges[b + 1]))
            assert taken_k[i, :s].tolist() == list(range(k_edges[b], k_edges[b + 1]))
            assert group.q_real[i].tolist() == [j < t for j in range(taken_q.shape[1])]
            assert q_places[i, 0, :t, 0].tolist() == list(range(s - t, s))
            assert k_places[i, 0, 0].tolist() == list(range(s)) + [-1] * (taken_k.shape[1] - s)


def test_equal_lengths_side_by_side_are_a_view_without_a_copy():
    x = torch.randn(12, 2, 3)
    (group,) = own(4, 4, 4).groups
    assert group.take_q(x).data_ptr() == x.data_ptr()
    assert group.take_q(x).shape == (3, 4, 2, 3)


def test_equal_lengths_with_others_between_are_gathered():
    x = torch.arange(11)
    long = own(4, 3, 4).groups[-1]
    assert long.take_q(x).tolist() == [[0, 1, 2, 3], [7, 8, 9, 10]]


def test_order_is_needed_only_where_groups_change_the_order():
    assert own(2, 2, 9).order is None
    assert own(0, 2, 0, 9, 0).order is None
    assert own(9, 2).order.tolist() == [*range(2, 11), 0, 1]


def test_queries_without_keys_point_behind_the_results():
    layout = Layout(torch.tensor([0, 2, 3]), torch.tensor([0, 0, 5]), 2, 5)
    assert layout.order.tolist() == [1, 1, 0]


def test_spans_say_where_a_sequence_lies():
    assert own(2, 3).spans(1) == (slice(2, 5), slice(2, 5))
    slots = Slots(torch.arange(3), torch.arange(3), 1, 4, torch.tensor([4, 2]), 6)
    assert slots.spans(1) == (slice(1, 2), slice(6, 8))


def test_the_mask_says_true_where_the_query_may_attend():
    query, key = torch.arange(4).view(-1, 1), torch.arange(4).view(1, -1)
    zero = torch.tensor(0)
    assert Mask().free
    assert not Mask(right=0).free
    assert torch.equal(Mask(right=0).allowed(zero, zero, query, key), torch.ones(4, 4).tril().bool())
    assert torch.equal(Mask(1, 1).allowed(zero, zero, query, key), (query - key).abs() <= 1)
    assert torch.equal(Mask(function=lambda b, h, q, k: k == 2).allowed(zero, zero, query, key), key == 2)
    assert Mask().allowed(zero, zero, query, torch.tensor([0, -1])).tolist() == [True, False]
