"""The tokens so far of sequences of different lengths."""

import torch

from regard.generate.history import History


def test_sequences_grow_by_one_token_each():
    history = History([[5, 6, 7], [8]], new=2, filler=-1, device="cpu")
    assert history.ids_BT.tolist() == [[5, 6, 7, -1, -1], [8, -1, -1, -1, -1]]
    history.add(torch.tensor([1, 2]))
    assert history.ids_BT.tolist() == [[5, 6, 7, 1, -1], [8, 2, -1, -1, -1]]
    assert (history.lengths_B.tolist(), history.max_length) == ([4, 2], 4)


def test_selected_sequences_may_repeat():
    history = History([[5, 6, 7], [8]], new=1, filler=-1, device="cpu")
    history.select(torch.tensor([1, 1, 0]))
    assert history.ids_BT.tolist() == [[8, -1, -1, -1], [8, -1, -1, -1], [5, 6, 7, -1]]
    assert history.lengths_B.tolist() == [1, 1, 3]
