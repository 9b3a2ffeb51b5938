"""Models made from presets."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.references import transformers

import regard
from regard.errors import InputError, UntrainedWarning
from regard.predict import info
from regard.text.learn import train_tokenizer_from_texts


def test_a_preset_cannot_read_texts() -> None:
    model = regard.create("tiny-bert")
    for call in (lambda: model.embed(["a"]), lambda: model.attention("a")):
        with pytest.raises(InputError, match=r"no tokenizer \(a preset has none\).* Give ids"):
            call()


def test_an_untrained_model_says_so_until_it_is_trained(tmp_path: Path) -> None:
    model = regard.create("tiny-bert", heads={"masked": 0})
    assert "untrained" in repr(model)
    assert (model.info().weights, model.info().note) == ("untrained", "untrained: the weights are randomly initialized")
    folder = model.save(tmp_path / "model")
    assert info(folder).weights == "untrained"
    with pytest.warns(UntrainedWarning, match="is untrained: its weights are randomly initialized"):
        again = regard.load(folder)
    assert "untrained" in repr(again)
    step = torch.optim.SGD(again.network.parameters(), lr=0.1)
    again.network(regard.Ragged.of([[5, 6]])).hidden.sum().backward()
    step.step()
    assert "untrained" not in repr(again)
    assert info(again.save(tmp_path / "trained")).weights == "stored"


def test_what_transformers_saved_again_is_not_called_untrained(tmp_path: Path) -> None:
    folder = regard.create("tiny-bert").save(tmp_path / "model")
    transformers.BertModel.from_pretrained(folder).save_pretrained(tmp_path / "again")
    assert info(tmp_path / "again").weights == "stored"


def test_a_network_is_created_with_other_settings_and_words(tmp_path: Path) -> None:
    words = train_tokenizer_from_texts(["a small text about nothing"] * 9, kind="char")
    model = regard.create("tiny-gpt2", tokenizer=words, layers=3)
    assert (model.config.vocabulary, model.config.layers) == (words.size, 3)
    assert isinstance(model.generate("a", max_tokens=2), str)
    with pytest.raises(InputError, match=r'"layer" is not a setting of this network. Did you mean "layers"'):
        regard.create("tiny-gpt2", layer=3)
