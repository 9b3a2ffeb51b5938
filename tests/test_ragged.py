import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import InputError
from regard.ragged import Ragged, sums_in_order

sequences = st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=6)
few = settings(max_examples=60, deadline=None)


def same(left, right):
    assert [row.tolist() for row in left.split(left.ids)] == [row.tolist() for row in right.split(right.ids)]
    assert left.positions.tolist() == right.positions.tolist()
    assert (left.segments is None) == (right.segments is None)
    if left.segments is not None:
        assert left.segments.tolist() == right.segments.tolist()


@given(sequences)
@few
def test_lists_come_back_as_they_went_in(rows):
    batch = Ragged.of(rows, segments=rows)
    assert [row.tolist() for row in batch.split(batch.ids)] == rows
    assert batch.segments is not None
    assert [row.tolist() for row in batch.split(batch.segments)] == rows
    assert [row.tolist() for row in batch.split(batch.positions)] == [list(range(len(row))) for row in rows]
    assert batch.sequence_ids.tolist() == [b for b, row in enumerate(rows) for _ in row]
    assert (len(batch), batch.tokens) == (len(rows), sum(map(len, rows)))
    assert batch.max_length == max(map(len, rows), default=0)
    assert batch.lengths.tolist() == list(map(len, rows))


def test_types_are_what_kernels_expect():
    batch = Ragged.of([[1, 2], []], segments=[[0, 1], []])
    assert (batch.ids.dtype, batch.positions.dtype, batch.segments.dtype) == (torch.int64,) * 3
    assert batch.bounds.dtype == torch.int32
    assert batch.bounds.tolist() == [0, 2, 2]
    assert batch.first().dtype == batch.last().dtype == torch.int64


@given(sequences.filter(lambda rows: all(rows)))
@few
def test_first_and_last_point_at_the_ends(rows):
    batch = Ragged.of(rows)
    assert batch.ids[batch.first()].tolist() == [row[0] for row in rows]
    assert batch.ids[batch.last()].tolist() == [row[-1] for row in rows]


def test_first_and_last_of_empty_sequences_stay_inside_the_batch():
    batch = Ragged.of([[], [5, 6], [], []])
    assert batch.first().tolist() == [0, 0, 1, 1]
    assert batch.last().tolist() == [0, 1, 1, 1]


@given(sequences)
@few
def test_mean_and_max_are_those_of_each_sequence_and_zero_when_empty(rows):
    batch = Ragged.of(rows)
    values = torch.randn(batch.tokens, 3, generator=torch.Generator().manual_seed(0)) - 5
    for b, part in enumerate(batch.split(values)):
        mean, greatest = (part.mean(0), part.amax(0)) if len(part) else (torch.zeros(3), torch.zeros(3))
        torch.testing.assert_close(batch.mean(values)[b], mean)
        torch.testing.assert_close(batch.max(values)[b], greatest)


@given(sequences)
@few
def test_sums_in_order_are_those_of_each_sequence(rows):
    batch = Ragged.of(rows)
    values = torch.randn(batch.tokens, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    sums = sums_in_order(values, batch.lengths)
    assert sums.shape == (len(rows), 3)
    for b, part in enumerate(batch.split(values)):
        torch.testing.assert_close(sums[b], part.sum(0))
    if batch.tokens:
        assert torch.autograd.grad(sums.sum(), values)[0].tolist() == torch.ones_like(values).tolist()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_mean_is_the_same_every_time_on_a_gpu():
    batch = Ragged.of([[1] * 700, [], [2] * 300], device="cuda")
    values = torch.randn(1000, 64, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    means = [batch.mean(values) for _ in range(20)]
    assert all(torch.equal(means[0], mean) for mean in means)
    torch.testing.assert_close(means[0][0], values[:700].mean(0))
    assert means[0][1].tolist() == [0.0] * 64


def test_a_mean_in_half_precision_is_rounded_once():
    batch, values = Ragged.of([[1] * 259]), torch.full((259, 1), 3.0, dtype=torch.bfloat16)
    assert batch.mean(values).tolist() == [[3.0]]
    assert batch.mean(values).dtype == torch.bfloat16


def test_gradients_reach_every_token_through_mean_and_the_greatest_through_max():
    batch = Ragged.of([[1, 2], [], [3]])
    values = torch.tensor([[1.0], [2.0], [-3.0]], requires_grad=True)
    assert torch.autograd.grad(batch.mean(values).sum(), values)[0].tolist() == [[0.5], [0.5], [1.0]]
    assert torch.autograd.grad(batch.max(values).sum(), values)[0].tolist() == [[0.0], [1.0], [1.0]]


@given(sequences.filter(len), st.data())
@few
def test_select_takes_sequences_in_the_given_order(rows, data):
    chosen = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=5))
    remaining = [rows[i] for i in chosen]
    same(Ragged.of(rows, segments=rows).select(chosen), Ragged.of(remaining, segments=remaining))


def test_select_keeps_positions_that_do_not_begin_at_zero():
    batch = Ragged(torch.tensor([7, 8, 9]), torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([4, 9, 10]), 2)
    assert batch.select([1]).positions.tolist() == [9, 10]


@given(st.lists(sequences, min_size=1, max_size=3))
@few
def test_concatenate_is_the_batch_of_all_lists(batches):
    joined = Ragged.concatenate([Ragged.of(rows) for rows in batches])
    every = Ragged.of([row for rows in batches for row in rows])
    same(joined, every)
    assert joined.max_length == every.max_length


@given(sequences.filter(any), st.integers(0, 20), st.integers(0, 3))
@few
def test_fixed_leaves_the_sequences_untouched_and_meets_the_shape(rows, spare, empty):
    batch = Ragged.of(rows, segments=rows)
    longest = batch.max_length + 1
    sequences = len(rows) + -(-spare // longest) + empty
    fixed = batch.fixed(tokens=batch.tokens + spare, sequences=sequences, max_length=longest)
    assert (fixed.tokens, len(fixed), fixed.max_length) == (batch.tokens + spare, sequences, longest)
    assert int(fixed.lengths.max()) <= longest
    assert set(fixed.ids.tolist()) == set(batch.ids.tolist())
    same(fixed.select(range(len(rows))), batch)


def test_to_moves_every_tensor():
    moved = Ragged.of([[1, 2]], segments=[[0, 0]]).to("meta")
    assert {t.device.type for t in (moved.ids, moved.bounds, moved.positions, moved.segments)} == {"meta"}
    assert moved.max_length == 2
    assert Ragged.of([[1]]).to("meta").segments is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Ragged.from_flat(torch.arange(3), [1, 1]), "the lengths add up to 2 tokens, but 3 tokens were given"),
        (lambda: Ragged.of([[1], [2]], segments=[[0]]), "2 sequences of ids but 1 of segments"),
        (lambda: Ragged.of([[1], [2, 3]], segments=[[0], [0]]), "sequence 1 has 2 ids but 1 segment"),
        (lambda: Ragged.of([[1, 2]]).split(torch.zeros(3, 1)), "has 2 tokens, but the tensor has 3 rows"),
        (lambda: Ragged.of([[1]]).select([1]), "sequence 1 does not exist: the batch has 1"),
        (lambda: Ragged.of([[1]]).select([-2]), "sequence -2 does not exist: the batch has 1"),
        (lambda: Ragged.concatenate([]), "expected at least one"),
        (lambda: Ragged.concatenate([Ragged.of([[1]]), Ragged.of([[1]], segments=[[0]])]), "give segments to all or"),
        (lambda: Ragged.of([[1, 2]]).fixed(tokens=1, sequences=9, max_length=9), "2 tokens in 1 sequence"),
        (lambda: Ragged.of([[1, 2]]).fixed(tokens=9, sequences=1, max_length=9), "Raise the budget or put fewer"),
        (lambda: Ragged.of([[1, 2]]).fixed(tokens=9, sequences=9, max_length=1), "does not fit the fixed shape"),
        (lambda: Ragged.of([[]]).fixed(tokens=9, sequences=9, max_length=9), "a batch without tokens"),
    ],
)
def test_wrong_use_names_what_was_given_and_how_to_fix_it(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


def test_twice_is_the_batch_and_its_copy():
    batch = Ragged.of([[5, 6, 7], [8]]).fixed(tokens=8, sequences=4, max_length=4)
    both = batch.twice()
    assert both.max_length == 4
    assert (len(both), both.tokens) == (8, 16)
    for name in ("ids", "positions"):
        assert torch.equal(getattr(both, name), torch.cat((getattr(batch, name),) * 2))
    assert torch.equal(both.lengths, torch.cat((batch.lengths, batch.lengths)))
