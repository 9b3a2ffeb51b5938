"""Attributions equal those of Captum on the same weights in transformers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    attr = pytest.importorskip("captum.attr", reason="needs captum: pip install captum")


@pytest.fixture(scope="module")
def ours() -> Any:
    return model("tiny-bert", {"sequence": 3})


@pytest.fixture(scope="module")
def theirs(ours: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers")
    folder = ours.save(tmp_path_factory.mktemp("models") / "bert")
    loaded = transformers.BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    return loaded.eval()


def inputs(ours: Any) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Ids, the baseline with all words masked, and the predicted class."""
    scorer: Any = make_scorer(ours, TEXT)
    ids = torch.tensor([scorer.text.sequences[0].ids])
    masked = torch.where(torch.tensor(scorer.text.erasable), ours.require_tokenizer().mask, ids)
    return ids, masked, scorer.target.number


def logits_of(theirs: Any) -> Any:
    return lambda ids: theirs(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


def test_gradient_x_input(ours: Any, theirs: Any) -> None:
    ids, _, number = inputs(ours)
    reference = attr.LayerGradientXActivation(logits_of(theirs), theirs.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, target=number)[0].sum(-1).detach().numpy()
    explanation = ours.explain(TEXT, method="gradient_x_input")
    np.testing.assert_allclose(explanation.token_scores, expected, atol=1e-5)


def test_integrated_gradients(ours: Any, theirs: Any) -> None:
    ids, masked, number = inputs(ours)
    reference = attr.LayerIntegratedGradients(logits_of(theirs), theirs.bert.embeddings.word_embeddings)
    expected = reference.attribute(ids, masked, target=number, n_steps=20, method="riemann_middle")
    explanation = ours.explain(TEXT, method="integrated_gradients", steps=20)
    np.testing.assert_allclose(explanation.token_scores, expected[0].sum(-1).detach().numpy(), atol=1e-5)


def test_occlusion_of_words(ours: Any, theirs: Any) -> None:
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


def test_sequential_integrated_gradients_with_many_steps_are_occlusion(ours: Any) -> None:
    occlusion = ours.explain(TEXT, method="occlusion")
    path = ours.explain(TEXT, method="sequential_integrated_gradients", steps=32)
    for one, other in zip(occlusion.words, path.words, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
