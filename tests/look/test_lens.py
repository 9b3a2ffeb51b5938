"""What each layer would predict: equal to running the head on the states of `model.embed`'s layers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tests.look.tiny_models import CONTEXT, KINDS, TEXT, model

from regard.errors import InputError
from regard.ragged import Ragged


@torch.no_grad()
def test_a_language_model_predicts_words_by_layer() -> None:
    for name in ("tiny-gpt2", "tiny-llama"):
        loaded = model(name)
        result = loaded.lens(TEXT, top=3)
        batch = Ragged.of([loaded.require_tokenizer().encode(TEXT).ids])
        stack = loaded.network.decoder
        assert result.layers == tuple(range(stack.depth + 1))
        for layer in result.layers:
            hidden = stack(batch, layers=layer)
            hidden = hidden if layer == stack.depth else stack.norm(hidden)  # the last one has its norm already
            chances = loaded.network.heads["language"](hidden).softmax(-1)
            for position, words in enumerate(result.words[layer]):
                best = chances[position, : loaded.require_tokenizer().size].topk(3)
                assert [word.probability for word in words] == pytest.approx(best.values.tolist(), abs=1e-6)
                names = [loaded.require_tokenizer().backend.id_to_token(token) for token in best.indices.tolist()]
                assert [word.token for word in words] == names


@torch.no_grad()
@pytest.mark.parametrize("name", ["tiny-bert", "tiny-albert"])
def test_a_classifier_has_class_probabilities_by_layer(name: str) -> None:
    loaded = model(name, {"sequence": 3})
    result = loaded.lens(TEXT)
    batch = Ragged.of([loaded.require_tokenizer().encode(TEXT).ids])
    assert result.probabilities is not None
    for layer in result.layers:
        hidden = loaded.network.encoder(batch, layers=layer)
        logits = loaded.network.heads["sequence"](loaded.network.heads["pooled"](hidden, batch))
        np.testing.assert_allclose(result.probabilities[layer], logits[0].softmax(-1).numpy(), atol=1e-6)
    (answer,) = loaded.predict([TEXT])
    assert result.probabilities[-1].max() == pytest.approx(answer.score, abs=1e-6)


def test_taggers_and_readers_predict_at_every_token() -> None:
    tags = model("tiny-bert", {"token": 3}).lens(TEXT)
    assert tags.probabilities is not None
    assert tags.kind == "tags"
    assert tags.probabilities.shape == (3, len(tags.tokens), 3)
    np.testing.assert_allclose(tags.probabilities.sum(-1), 1, atol=1e-5)
    spans = model("tiny-bert", {"span": 2}).lens("who was warm", CONTEXT)
    assert spans.probabilities is not None
    np.testing.assert_allclose(spans.probabilities.sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("kind", ["masked", "t5", "bert-pair", "modernbert"])
def test_every_kind_is_written_as_json(kind: str) -> None:
    name, heads, pair = KINDS[kind]
    result = model(name, heads).lens(TEXT, pair)
    values = json.loads(json.dumps(result.json()))
    assert values["layers"][0] == 0
    assert ("words" in values) == (result.kind == "words")


@pytest.mark.parametrize(("kind", "message"), [("gru", "recurrent"), ("vectors", "no head")])
def test_models_without_layers_or_heads_are_an_error(kind: str, message: str) -> None:
    name, heads, _ = KINDS[kind]
    with pytest.raises(InputError, match=message):
        model(name, heads).lens(TEXT)
