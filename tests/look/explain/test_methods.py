"""Every method against an independent computation of the same scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.look.tiny_models import TEXT, model
from torch import Tensor

from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.attention_rollout import decoder_rollout, rollout
from regard.look.explain.methods.integrated_gradients import METHOD, dense, midpoints
from regard.look.explain.methods.method import MethodOptions
from regard.model import hooks as taps
from regard.model.block import Block
from regard.model.mean_layer import append_mean_layer
from regard.ragged import Ragged

# A tiny classifier, and the same weights in transformers.


@pytest.fixture(scope="module")
def ours() -> Any:
    return model("tiny-bert", {"sequence": 3})


@pytest.fixture(scope="module")
def theirs(ours: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers")
    folder = ours.save(tmp_path_factory.mktemp("models") / "bert")
    loaded = transformers.BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    return loaded.eval()


# The inputs of Captum for a text.


def inputs(ours: Any) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Ids, the baseline with all words masked, and the predicted class."""
    scorer: Any = make_scorer(ours, TEXT)
    ids = torch.tensor([scorer.text.sequences[0].ids])
    masked = torch.where(torch.tensor(scorer.text.erasable), ours.require_tokenizer().mask, ids)
    return ids, masked, scorer.target.number


@pytest.fixture
def attr() -> Any:
    return pytest.importorskip("captum.attr", reason="needs captum: pip install captum")


def logits_of(theirs: Any) -> Any:
    return lambda ids: theirs(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


# Methods that take long say how far they are.


@pytest.mark.parametrize("method", ["occlusion", "integrated_gradients"])
def test_the_last_report_is_that_all_is_done(method: str) -> None:
    seen: list[Any] = []
    model("tiny-bert", {"sequence": 2}).explain(TEXT, method=method, progress=seen.append)
    assert seen
    assert seen[-1].done == seen[-1].total


# Random scores.


def test_scores_depend_on_the_seed_and_the_text_only() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    first, again, other = (loaded.explain(TEXT, method="random", seed=seed).token_scores for seed in (0, 0, 1))
    assert first == again != other
    assert first[0] == first[-1] == 0  # special tokens


# Occlusion of words equals that of Captum.


def test_scores_equal_captum(ours: Any, theirs: Any, attr: Any) -> None:
    ids, masked, number = inputs(ours)
    explanation = ours.explain(TEXT, method="occlusion")
    groups = torch.zeros_like(ids)
    for number_of_word, one in enumerate(explanation.words, start=1):
        groups[0, list(one.tokens)] = number_of_word
    reference = attr.FeatureAblation(logits_of(theirs))
    expected = reference.attribute(ids, masked, target=number, feature_mask=groups)[0]
    for word in explanation.words:
        assert word.score == pytest.approx(float(expected[word.tokens[0]]), abs=1e-5)
    assert explanation.words[-1].score == pytest.approx(
        sum(explanation.token_scores[token] for token in explanation.words[-1].tokens)
    )


# Attention weights of the last layer.


def test_the_last_layer_is_the_mean_of_its_heads() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    explanation = loaded.explain(TEXT, method="attention")
    np.testing.assert_allclose(explanation.token_scores, loaded.attention(TEXT)[2].mean(0)[0].numpy(), atol=1e-6)
    assert explanation.note is not None
    assert "not an explanation" in explanation.note
    assert not explanation.signed


def test_a_layer_that_averages_is_multiplied_by_the_one_before() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    append_mean_layer(loaded.network)
    layers = loaded.attention(TEXT)
    last, before = layers[3].mean(0)[0].numpy(), layers[2].mean(0).numpy()
    assert last.max() - last.min() < 1e-6
    explanation = loaded.explain(TEXT, method="attention")
    np.testing.assert_allclose(explanation.token_scores, last @ before, atol=1e-6)
    assert max(explanation.token_scores) - min(explanation.token_scores) > 1e-3


# Attention rollout equals a plain loop.


def test_rollout_equals_a_loop() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    attention = loaded.attention(TEXT)
    size = len(attention.tokens)
    total = np.eye(size)
    for layer in attention:
        mean = attention[layer].mean(0).numpy()
        new = np.zeros((size, size))
        for i in range(size):
            for j in range(size):
                new[i, j] = sum((mean[i, k] + (i == k)) / 2 * total[k, j] for k in range(size))
        total = new
    explanation = loaded.explain(TEXT, method="attention_rollout")
    np.testing.assert_allclose(explanation.token_scores, total[0], atol=1e-6)
    assert sum(explanation.token_scores) == pytest.approx(1, abs=1e-5)


def test_what_a_decoder_reads_adds_up_to_one() -> None:
    generator = torch.Generator().manual_seed(0)
    own = [torch.rand(2, 3, 3, generator=generator).softmax(-1) for _ in range(2)]
    cross = [torch.rand(2, 3, 4, generator=generator).softmax(-1) for _ in range(2)]
    total = decoder_rollout(own, cross, rollout([torch.rand(2, 4, 4, generator=generator).softmax(-1)]))
    assert total.shape == (3, 7)
    torch.testing.assert_close(total.sum(-1), torch.ones(3))


# The decomposition equals one that carries a vector for every pair of tokens through the layers.


def fixed_norm(norm: Any, parts_TSD: Tensor) -> Tensor:
    """The norm of a sum of parts, as a sum of parts. The last part is that of the biases."""
    total_TD = parts_TSD.sum(1)
    scale_T1 = (total_TD.var(-1, correction=0, keepdim=True) + norm.eps).rsqrt()
    out = (parts_TSD - parts_TSD.mean(-1, keepdim=True)) * scale_T1.unsqueeze(1) * norm.weight
    out[:, -1] += norm.bias
    return out


def linear(layer: torch.nn.Linear, parts: Tensor) -> Tensor:
    out = parts @ layer.weight.T
    out[..., -1, :] += layer.bias
    return out


def activation(function: Any, parts: Tensor) -> Tensor:
    total = parts.sum(-2, keepdim=True)
    return parts * (function(total) / total)


def block_parts(block: Block, parts_TSD: Tensor, weights_HTT: Tensor) -> Tensor:
    heads, size = len(weights_HTT), parts_TSD.shape[-1]
    values_TSD = linear(block.attention.qkv, parts_TSD)[..., 2 * size :]
    values_TSHK = values_TSD.unflatten(-1, (heads, -1))
    mixed_TSD = torch.einsum("hqt,tshk->qshk", weights_HTT, values_TSHK).flatten(2)
    parts_TSD = fixed_norm(block.attention_norm, parts_TSD + linear(block.attention.out, mixed_TSD))
    wide = activation(block.feedforward.activation, linear(block.feedforward.up, parts_TSD))
    return fixed_norm(block.feedforward_norm, parts_TSD + linear(block.feedforward.down, wide))


@torch.no_grad()
def test_the_decomposition_equals_one_that_carries_every_part_forward() -> None:
    loaded = model("tiny-bert", {"sequence": 3})
    network = loaded.network
    scorer: Any = make_scorer(loaded, TEXT)
    sequence = scorer.text.sequences[0]
    batch = Ragged.of([sequence.ids], segments=[sequence.segments])
    weights = taps.attention(network, batch)
    x_TD = network.encoder.embeddings(batch)
    size = len(x_TD)
    parts_TSD = torch.zeros(size, size + 1, x_TD.shape[1])
    parts_TSD[torch.arange(size), torch.arange(size)] = x_TD
    for layer, block in enumerate(network.encoder.layers):
        parts_TSD = block_parts(block, parts_TSD, weights[layer][0])
    transform, head = network.heads["pooled"].transform, network.heads["sequence"]
    pooled_SD = activation(transform.activation, linear(transform.dense, parts_TSD[0]))
    logits_SC = linear(head.output, pooled_SD)
    explanation = loaded.explain(TEXT, method="decomposition")
    expected = logits_SC[:, scorer.target.number].numpy()
    np.testing.assert_allclose(explanation.token_scores, expected[:-1], atol=1e-5)
    np.testing.assert_allclose(explanation.bias, expected[-1], atol=1e-5)


# Integrated gradients equal those of Captum and add up.


def test_scores_equal_captum_of_integrated_gradients(ours: Any, theirs: Any, attr: Any) -> None:
    ids, masked, number = inputs(ours)
    reference = attr.LayerIntegratedGradients(logits_of(theirs), theirs.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, masked, target=number, n_steps=20, method="riemann_middle")
    explanation = ours.explain(TEXT, method="integrated_gradients", steps=20)
    np.testing.assert_allclose(explanation.token_scores, expected[0].sum(-1).detach().numpy(), atol=1e-5)


def test_dense_points_integrate_smooth_functions() -> None:
    parts = midpoints(108)
    points, density = dense(parts)
    assert (np.diff(points) > 0).all()
    for power in (0, 1, 3):
        assert np.mean(points**power / density) == pytest.approx(1 / (power + 1), abs=2e-3)
    assert np.mean(np.exp(-((points - 0.3) ** 2) / 0.02) / density) == pytest.approx(0.25032, abs=1e-4)


def test_steps_are_added_until_the_scores_add_up(ours: Any) -> None:
    scorer = make_scorer(ours, TEXT)
    automatic = METHOD.explain(scorer, MethodOptions())
    assert automatic.baseline is not None
    value = scorer.erased_scores(scorer.nothing_erased)[0]
    assert automatic.tokens_T.sum() == pytest.approx(value - automatic.baseline, rel=0.01)
