import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.model.kernels.cases import CROSS, MASKS, SELF, H, K, agree, biases, few, layout_of, results, size

from regard.config import SCORES
from regard.errors import InputError
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import KERNELS, attend, may_use_tiles, pick_kernel, without_tiles
from regard.model.kernels.layout import Layout, Mask, SlotLayout
from regard.model.scores import build_score


@pytest.mark.parametrize("kernel", ["grouped", "explicit"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("pairs", [SELF, CROSS], ids=["self", "cross"])
def test_kernels_agree_for_every_mask(kernel, mask, pairs):
    agree(kernel, pairs, mask=MASKS[mask])


@pytest.mark.parametrize("kernel", ["grouped", "explicit"])
@pytest.mark.parametrize("groups", [2, 1])
@pytest.mark.parametrize("mask", ["free", "causal", "own rule"])
def test_kernels_agree_for_grouped_and_single_key_heads(kernel, groups, mask):
    agree(kernel, SELF, groups=groups, mask=MASKS[mask])
    agree(kernel, CROSS, groups=groups, mask=MASKS[mask], bias="learned")


@pytest.mark.parametrize("kernel", ["grouped", "explicit"])
@pytest.mark.parametrize("bias", ["learned", "alibi"])
@pytest.mark.parametrize("mask", ["free", "causal", "left window", "own rule"])
def test_kernels_agree_for_biases_and_pass_gradients_into_them(kernel, bias, mask):
    agree(kernel, SELF, bias=bias, mask=MASKS[mask])
    agree(kernel, CROSS, bias=bias, mask=MASKS[mask])
    assert results(kernel, SELF, bias=bias)[-1].abs().sum() > 0


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("groups", [H, 2])
def test_kernels_agree_for_every_score(score, groups):
    agree("explicit", SELF, score=score, mask=MASKS["causal"], groups=groups)
    agree("explicit", CROSS, score=score, bias="learned", groups=groups)
    if score != "additive":
        agree("grouped", SELF, score=score, mask=MASKS["causal"], groups=groups)
        agree("grouped", CROSS, score=score, bias="learned", groups=groups)


@pytest.mark.parametrize("mask", ["free", "causal", "own rule"])
def test_kernels_agree_for_hard_selection(mask):
    agree("explicit", SELF, select="hard", mask=MASKS[mask])
    agree("explicit", CROSS, select="hard", mask=MASKS[mask], groups=2, bias="alibi")


@given(st.lists(st.tuples(size, size), min_size=1, max_size=6), st.sampled_from(list(MASKS)))
@few
def test_kernels_agree_for_any_lengths(pairs, mask):
    for kernel in ("grouped", "explicit"):
        agree(kernel, pairs, mask=MASKS[mask], groups=2)


@pytest.mark.parametrize("kernel", ["reference", "grouped", "explicit", "packed"])
def test_a_batch_of_nothing_gives_nothing(kernel):
    empty = torch.zeros(0, H, K)
    assert attend(
        empty, empty, empty, AttentionCall(Layout.for_self_attention(torch.tensor([0]), 0)), kernel=kernel
    ).shape == (0, H, K)


@pytest.mark.parametrize("kernel", ["reference", "grouped", "explicit"])
def test_a_query_that_may_see_nothing_receives_zeros_and_gives_no_nan(kernel):
    no_key_mask = Mask(function=lambda sequence, head, query, key: (query > 0) & (key >= 0))
    out, *grads = results(kernel, [(3, 3), (4, 4)], mask=no_key_mask, bias="learned")
    assert out[0].abs().sum() == out[3].abs().sum() == 0
    assert (out[[1, 2, 4, 5, 6]].abs().sum((1, 2)) > 0).all()
    assert all(grad.isfinite().all() for grad in grads)
    assert grads[0][0].abs().sum() == 0


@pytest.mark.parametrize("kernel", ["reference", "grouped", "explicit"])
def test_true_means_may_attend(kernel):
    value = torch.tensor([[1.0], [10.0], [100.0]]).expand(3, K).unsqueeze(1)
    zeros = torch.zeros(3, 1, K)
    only = Mask(function=lambda sequence, head, query, key: key == 1)
    out = attend(
        zeros, zeros, value, AttentionCall(Layout.for_self_attention(torch.tensor([0, 3]), 3), only), kernel=kernel
    )
    assert out.flatten().tolist() == [10.0] * 3 * K


@pytest.mark.parametrize("kernel", ["reference", "grouped", "explicit"])
def test_causal_is_aligned_at_the_end(kernel):
    value = torch.arange(1.0, 4.0).view(3, 1, 1).expand(3, 1, K)
    call = AttentionCall(layout_of([(2, 3)]), Mask(right=0))
    out = attend(torch.zeros(2, 1, K), torch.zeros(3, 1, K), value, call, kernel=kernel)
    assert out[:, 0, 0].tolist() == [1.5, 2.0]


@pytest.mark.parametrize("kernel", ["reference", "grouped", "explicit", "packed"])
def test_dropout_keeps_the_mean_in_training_and_is_off_otherwise(kernel):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 5, H, K)
    layout = Layout.for_self_attention(torch.tensor([0, 5]), 5)
    plain = attend(q, k, v, AttentionCall(layout), kernel=kernel)
    assert torch.equal(attend(q, k, v, AttentionCall(layout, dropout=0.5), kernel=kernel), plain)
    call = AttentionCall(layout, dropout=0.5, training=True)
    sampled = torch.stack([attend(q, k, v, call, kernel=kernel) for _ in range(600)])
    assert (sampled[0] - plain).abs().max() > 0.05
    spread = sampled.std(0) / 600**0.5
    assert ((sampled.mean(0) - plain).abs() < 5 * spread + 1e-6).all()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bias", ["none", "learned"])
@pytest.mark.parametrize(("score", "select"), [("scaled", "soft"), ("additive", "soft"), ("scaled", "hard")])
def test_one_new_token_against_its_slots_equals_the_reference(mask, bias, score, select):
    torch.manual_seed(0)
    filled, capacity = torch.tensor([5, 1, 7]), 9
    q, k, v = torch.randn(3, H, K), torch.randn(27, 2, K), torch.randn(27, 2, K)
    made = build_score(score, H, K, kv_heads=2)
    for weight in made.parameters():
        torch.nn.init.normal_(weight)
    layout = SlotLayout(torch.arange(4), torch.arange(4), 1, 7, filled, capacity)
    call = AttentionCall(layout, MASKS[mask], made, select, biases(7)[bias])
    assert pick_kernel(q, call) == "slots"
    torch.testing.assert_close(attend(q, k, v, call), attend(q, k, v, call, kernel="reference"))
    k_slots, v_slots = (x.unflatten(0, (3, 9)) for x in (k, v))
    for kernel in ("slots", "reference"):
        torch.testing.assert_close(attend(q, k_slots, v_slots, call, kernel=kernel), attend(q, k, v, call))


def test_the_fastest_kernel_that_can_is_picked():
    q = torch.zeros(2, H, K)
    layout = Layout.for_self_attention(torch.tensor([0, 2]), 2)
    assert pick_kernel(q, AttentionCall(layout)) == "grouped"
    assert pick_kernel(q, AttentionCall(layout, dropout=0.1, training=True)) == "packed"
    assert pick_kernel(q, AttentionCall(layout_of(CROSS), dropout=0.1, training=True)) == "grouped"
    assert pick_kernel(q, AttentionCall(layout, select="hard")) == "explicit"
    assert pick_kernel(q, AttentionCall(layout, score=build_score("additive", H, K))) == "explicit"
    assert pick_kernel(q, AttentionCall(layout, score=build_score("cosine", H, K))) == "grouped"


def test_an_unknown_kernel_names_the_nearest():
    empty = torch.zeros(0, H, K)
    with pytest.raises(InputError, match=r'"groupd" is not known. Did you mean "grouped"'):
        attend(empty, empty, empty, AttentionCall(Layout.for_self_attention(torch.tensor([0]), 0)), kernel="groupd")
    assert set(KERNELS) == {"reference", "grouped", "packed", "explicit", "varlen", "dense", "tiles", "flex", "slots"}


def test_the_choice_of_tiles_can_be_compiled() -> None:
    """A context variable cannot be read in a compiled graph: compiled networks on a GPU failed with fullgraph."""

    @torch.compile(fullgraph=True, backend="eager")
    def compiled(x):
        return x + 1 if may_use_tiles() else x

    assert may_use_tiles()
    assert compiled(torch.zeros(())) == 1
    with without_tiles():
        assert not may_use_tiles()
