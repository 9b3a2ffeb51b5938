"""ELMo from plain text, its layers as vectors, and fine-tuned through a mix of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from regard import load, samples
from regard.errors import InputError
from regard.evaluation.evaluate import evaluate
from regard.predict import Model, info
from regard.training.pretrain import pretrain
from regard.training.result import PretrainResult
from regard.training.train import train

CORPUS = samples.path("corpus")
SMALL: dict[str, Any] = {"device": "cpu", "objective": "bidirectional", "preset": "tiny-elmo", "batch_tokens": 1024}
TEXT = "The mother stood by the river."


@pytest.fixture(scope="module")
def pretrained(pretrained_folder: Any) -> PretrainResult:
    result: PretrainResult = pretrained_folder.result([CORPUS], steps=100, lr=2e-2, window=32, **SMALL)
    return result


@pytest.fixture(scope="module")
def model(pretrained: PretrainResult) -> Model:
    return load(pretrained.folder, device="cpu")


def test_both_directions_are_learned_and_scored(pretrained: PretrainResult) -> None:
    assert list(pretrained.scores) == ["perplexity", "nll", "perplexity_ahead", "perplexity_back"]
    ahead, back = (pretrained.scores[f"perplexity_{side}"].value for side in ("ahead", "back"))
    assert max(ahead, back) < 0.9 * pretrained.baseline["perplexity"]
    assert pretrained.scores["perplexity"].value == pytest.approx((ahead * back) ** 0.5, rel=1e-6)  # as many words each


def test_evaluation_is_the_surprise_from_each_end(model: Model, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    assert model.tokenizer is not None
    ids = torch.tensor(model.tokenizer.encode(TEXT).ids)
    logits = model.outputs([ids.tolist()])[0].logits
    assert logits is not None
    sides = (logits[:-1, 0], ids[1:]), (logits[1:, 1], ids[:-1])
    expected = [nn.functional.cross_entropy(*side).exp().item() for side in sides]
    scores = evaluate(model, tmp_path / "text.txt").scores
    assert [scores[f"perplexity_{side}"].value for side in ("ahead", "back")] == pytest.approx(expected, rel=1e-4)


def test_the_folder_comes_back_the_same(model: Model, tmp_path: Path) -> None:
    again = load(model.save(tmp_path / "copy"), device="cpu")
    assert np.array_equal(again.embed([TEXT]), model.embed([TEXT]))
    message = model.info()
    assert (message.family, message.task, message.kind, message.layers, message.width) == (
        "elmo",
        "bidirectional",
        "encoder",
        2,
        32,
    )
    assert message.layer_weights is None


def test_every_layer_makes_vectors(model: Model) -> None:
    layers = [np.asarray(model.embed_tokens([TEXT], layer=layer)[0]) for layer in (0, 1, 2)]
    assert all(layer.shape == layers[0].shape for layer in layers)
    assert np.allclose(layers[0][:, :16], layers[0][:, 16:])  # before any layer both sides are the word itself
    mixed = model.embed_tokens([TEXT], layer="mix")[0]
    assert np.allclose(mixed, np.mean(layers, axis=0), atol=1e-6)
    for layer, message in ((3, "0 .embeddings. to 2"), ("all", 'or "mix"')):
        with pytest.raises(InputError, match=message):
            model.embed([TEXT], layer=layer)
    with pytest.raises(InputError, match="has no attention between the tokens"):
        model.attention(TEXT)
    with pytest.raises(InputError, match="cannot generate"):
        model.generate(TEXT)


@pytest.mark.parametrize(("sample", "task"), [("messages", "classify"), ("places", "tag")])
def test_tasks_learn_a_mix_of_the_layers(pretrained: PretrainResult, tmp_path: Path, sample: str, task: str) -> None:
    out = tmp_path / "run"
    result = train(samples.path(sample), start=pretrained.folder, out=out, steps=40, lr=2e-2, device="cpu")
    assert result.task == task
    options = info(out)
    assert options.layer_weights is not None
    assert sum(options.layer_weights) == pytest.approx(1.0, abs=1e-3)
    assert max(options.layer_weights) - min(options.layer_weights) > 1e-3
    tuned = load(out, device="cpu")
    assert tuned.info().layer_weights == options.layer_weights
    assert tuned.predict([TEXT])
    mixed, last = (tuned.embed([TEXT], layer=layer) for layer in ("mix", -1))
    assert not np.allclose(mixed, last)


def test_a_frozen_encoder_keeps_its_weights(pretrained: PretrainResult, model: Model, tmp_path: Path) -> None:
    """As ELMo is used in its paper: the task learns the mix and what stands on it."""
    out = tmp_path / "run"
    train(
        samples.path("messages"), start=pretrained.folder, out=out, steps=5, lr=1e-2, device="cpu", freeze=("encoder",)
    )
    tuned = load(out, device="cpu")
    for name, parameter in model.network.encoder.named_parameters():  # type: ignore[union-attr]  # it has one
        assert torch.equal(parameter, tuned.network.get_parameter(f"encoder.{name}"))
    assert json.loads((out / "config.json").read_text())["architectures"] == ["ElmoForSequenceClassification"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "mlm"}, "family elmo have no head for masked tokens. Use objective bidirectional"),
        ({"preset": "tiny-bert"}, "family bert have no head for the tokens on both sides. Use objective mlm"),
        ({"preset": "tiny-gpt2"}, "is of kind decoder. Use objective causal"),
        ({"lora": {"rank": 2}}, "lora.rank is not possible for a recurrent network"),
    ],
)
def test_wrong_use_is_an_error(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pretrain([CORPUS], out=tmp_path / "run", steps=1, **{**SMALL, **options})
