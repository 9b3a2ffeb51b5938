"""Models are loaded, created and described."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.predict.models import random_checkpoint
from tests.references import transformers

import regard
from regard.checkpoint.published import PUBLISHED
from regard.checkpoint.source import from_preset, minilm_folder
from regard.checkpoint.write_folder import write_folder
from regard.errors import FolderError, InputError, UntrainedWarning
from regard.predict import info
from regard.text.learn import train_tokenizer_from_texts

# Models loaded from folders, with or without a tokenizer.


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random_checkpoint("tiny-bert"))
    with pytest.raises(FolderError, match=f"{tmp_path}/model has no tokenizer: expected tokenizer.json"):
        regard.load(tmp_path / "model").embed(["a"])
    (tmp_path / "model" / "spiece.model").write_bytes(b"x")
    with pytest.raises(FolderError, match=r"It has spiece.model, which transformers converts into a tokenizer.json"):
        regard.load(tmp_path / "model").embed(["a"])


def test_a_tokenizer_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random_checkpoint("tiny-bert"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "model" / name).symlink_to(minilm_folder() / name)
    with pytest.raises(FolderError, match=r'"tokenizer(_config)?\.json" is a link out of the folder'):
        regard.load(tmp_path / "model")


# Models made from presets.


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


# What a model is, from its settings and headers alone.


SIZES = {  # shared/peers.md
    "bert-tiny": 4_385_920,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-medium": 41_373_184,
    "bert-base-uncased": 109_482_240,
    "bert-base-cased": 108_310_272,
    "bert-base-chinese": 102_267_648,
    "bert-base-multilingual-cased": 177_853_440,
    "bert-large-uncased": 335_141_888,
}


@pytest.mark.parametrize("name", SIZES)
def test_info_counts_without_making_a_weight(name: str) -> None:
    checkpoint = from_preset(name, weights=False)
    assert all(tensor.is_meta for tensor in checkpoint.network.state_dict().values())
    result = info(name)
    assert result.parameters == SIZES[name]
    assert result.bytes == 4 * SIZES[name]
    assert result.weights == "not read"
    assert result.note is not None
    assert f"numbers of the published shape; its weights ({PUBLISHED[name]} on the hub)" in result.note


def test_info_of_a_folder_reads_no_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    write_folder(folder, from_preset("tiny-bert", dtype=torch.float32))
    monkeypatch.setattr("regard.checkpoint.weights.StoredTensor.read", lambda *_: pytest.fail("a tensor was read"))
    result = info(folder)
    assert result.parameters == sum(
        parameter.numel()
        for parameter in from_preset("tiny-bert", dtype=torch.float32, weights=False).network.parameters()
    )
    assert result.bytes == (folder / "model.safetensors").stat().st_size
