"""Sequences laid out step by step."""

from regard.model.recurrent.unrolled import Unrolled


def test_steps_hold_every_token_once(tokens):
    batch = tokens((2, 0, 4, 1, 4))
    steps = Unrolled.of(batch)
    assert steps.rows.tolist() == [2, 4, 0, 3]
    assert steps.sizes == (4, 3, 2, 2)
    assert steps.order.tolist() == [2, 7, 0, 6, 3, 8, 1, 4, 9, 5, 10]
    assert steps.order[steps.back].tolist() == list(range(11))
