"""Recurrent language models from plain text: learned, kept, scored, and written with."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard import load, samples
from regard.errors import InputError
from regard.evaluation.evaluate import evaluate
from regard.predict import Model
from regard.training.pretrain import pretrain
from regard.training.result import PretrainResult

CORPUS = samples.path("corpus")
SMALL: dict[str, Any] = {"device": "cpu", "objective": "causal", "preset": "tiny-lstm-language", "batch_tokens": 1024}


@pytest.fixture(scope="module")
def result(pretrained_folder: Any) -> PretrainResult:
    trained: PretrainResult = pretrained_folder.result([CORPUS], steps=100, lr=2e-2, window=32, dropout=0.05, **SMALL)
    return trained


@pytest.fixture(scope="module")
def model(result: PretrainResult) -> Model:
    return load(result.folder, device="cpu")


def test_letters_are_learned(result: PretrainResult) -> None:
    assert result.scores["perplexity"].value < 0.75 * result.baseline["perplexity"]


def test_the_folder_says_what_it_is(model: Model) -> None:
    info = model.info()
    assert (info.family, info.task, info.kind, info.layers) == ("recurrent-language", "causal", "decoder", 2)
    assert info.tokenizer == "wordlevel"
    assert model.folder is not None
    content = json.loads((model.folder / "config.json").read_text())
    assert content["architectures"] == ["RecurrentForLanguage"]
    assert content["eos_token_id"] is None  # single letters have no token for the end
    assert "bidirectional" not in content
    assert "transformers cannot open this folder" in (model.folder / "README.md").read_text()


def test_nothing_is_put_around_a_text(model: Model) -> None:
    """Text was learned as it stands: a model that never saw [CLS] is not to begin with it."""
    assert model.tokenizer is not None
    assert len(model.tokenizer.encode("of a").ids) == 4


def test_evaluation_is_the_surprise_at_every_letter_but_the_first(model: Model, tmp_path: Path) -> None:
    text = "The mother stood by the river and looked at the boats."
    (tmp_path / "text.txt").write_text(text)
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(text).ids
    logits = model.outputs([ids])[0].logits
    assert logits is not None
    nll = nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:])).item()
    scores = evaluate(model, tmp_path / "text.txt").scores
    assert scores["nll"].value == pytest.approx(nll, rel=1e-4)
    assert scores["perplexity"].value == pytest.approx(math.exp(nll), rel=1e-4)


def test_it_writes_as_it_reads(model: Model) -> None:
    assert model.tokenizer is not None
    ids = list(model.tokenizer.encode("The riv").ids)
    for _ in range(12):
        logits = model.outputs([ids])[0].logits
        assert logits is not None
        ids.append(int(logits[-1].argmax()))
    greedy = model.generate("The riv", max_tokens=12)
    assert greedy == model.tokenizer.decode(ids[7:])
    assert "".join(model.stream("The riv", max_tokens=12)) == greedy
    assert model.generate(["A", "The riv"], max_tokens=12)[1] == greedy


def test_beams_and_samples(model: Model) -> None:
    (greedy,), (best, *_) = (model.continuations(["The"], max_tokens=8, beams=beams)[0] for beams in (1, 4))
    assert best.score * 8 >= greedy.score - 1e-4  # beams are ranked by the mean
    actual = [model.generate("The", max_tokens=30, sample=True, seed=seed) for seed in (1, 1, 2)]
    assert actual[0] == actual[1] != actual[2]
    with pytest.raises(InputError, match=r"What it can do: model.generate\(text\)\. Or train"):
        model.predict(["The"])


def test_a_training_goes_on_from_its_folder(result: PretrainResult, tmp_path: Path) -> None:
    options = {name: value for name, value in SMALL.items() if name != "preset"}
    more = pretrain([CORPUS], start=result.folder, out=tmp_path / "more", steps=20, lr=5e-3, window=32, **options)
    assert more.scores["nll"].value < result.scores["nll"].value + 0.02


def test_windows_longer_than_the_default_are_possible(tmp_path: Path) -> None:
    pretrain([CORPUS], out=tmp_path / "run", steps=1, window=700, **SMALL)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["window"] == 700


def test_hidden_words_are_not_for_decoders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recurrent-language.* is of kind decoder. Use objective causal"):
        pretrain([CORPUS], out=tmp_path / "run", **{**SMALL, "objective": "mlm"})
