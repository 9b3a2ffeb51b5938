"""Heads and layers that are switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.look.tiny_models import TEXT, model

import regard
from regard.errors import InputError
from regard.ragged import Ragged


def test_an_ablated_head_equals_zeroed_weights_in_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = model("tiny-bert", {"sequence": 3})
    theirs = transformers.BertForSequenceClassification.from_pretrained(ours.save(tmp_path / "whole")).eval()
    ids = [2, 5, 6, 7, 8, 3]
    with torch.no_grad():
        attention = theirs.bert.encoder.layer[0].attention
        attention.self.value.weight[8:16] = 0
        attention.self.value.bias[8:16] = 0
        attention.output.dense.weight[:, 8:16] = 0
        expected = theirs(torch.tensor([ids])).logits[0]
        whole = ours.network(Ragged.of([ids])).logits[0]
        with ours.ablate([(1, 1)]):
            torch.testing.assert_close(ours.network(Ragged.of([ids])).logits[0], expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.network(Ragged.of([ids])).logits[0], whole)
    assert not torch.allclose(expected, whole)
    ours.without_heads([(1, 1)]).save(tmp_path / "pruned")
    saved = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "pruned").eval()
    with torch.no_grad():
        torch.testing.assert_close(saved(torch.tensor([ids])).logits[0], expected, atol=1e-5, rtol=1e-5)


def test_a_model_without_heads_is_read_back_and_the_first_one_stays(tmp_path: Path) -> None:
    ours = model("tiny-bert", {"sequence": 3})
    before = ours.predict([TEXT])
    pruned = ours.without_heads([(-1, 0), (1, 3)])
    pruned.save(tmp_path / "pruned")
    read: Any = regard.load(tmp_path / "pruned")
    assert read.predict([TEXT])[0].scores == pytest.approx(pruned.predict([TEXT])[0].scores)
    assert ours.predict([TEXT]) == before
    with ours.ablate([(-1, 0), (1, 3)]):
        assert ours.predict([TEXT])[0].scores == pytest.approx(pruned.predict([TEXT])[0].scores, abs=1e-6)


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-albert"])
def test_a_layer_that_is_off_passes_on_what_it_reads(name: str) -> None:
    ours = model(name, {"sequence": 2})
    stack = ours.network.encoder
    batch = Ragged.of([[2, 5, 6, 3]])
    with torch.no_grad():
        x = stack.embeddings(batch)
        context = stack.context(batch, None, None, None)
        for layer in range(stack.depth):
            x = x if layer == 1 else stack.layers[stack.layer_index(layer)](x, context)
        with ours.ablate(layers=[2]):
            torch.testing.assert_close(stack(batch), x)


def test_heads_of_layers_that_share_weights_are_switched_off_one_by_one() -> None:
    ours = model("tiny-albert", {"sequence": 2})
    answers = []
    for layer in (1, 2, 3):
        with ours.ablate([(layer, 0)]):
            answers.append(ours.predict([TEXT])[0].score)
    assert len(set(answers)) == 3
    with pytest.raises(InputError, match="share their weights"):
        ours.without_heads([(1, 0)])
    everywhere = [(layer, 0) for layer in (1, 2, 3)]
    with ours.ablate(everywhere):
        expected = ours.predict([TEXT])[0].score
    assert ours.without_heads(everywhere).predict([TEXT])[0].score == pytest.approx(expected, abs=1e-6)


def test_cross_attention_and_grouped_heads() -> None:
    translator = model("tiny-transformer")
    source, target = Ragged.of([[5, 6, 7]]), Ragged.of([[0, 8, 9]])
    llama = model("tiny-llama")
    with torch.no_grad():
        with translator.ablate([(1, 0)], cross=True):
            expected = translator.network(source, target).logits
        pruned = translator.without_heads([(1, 0)], cross=True)
        torch.testing.assert_close(pruned.network(source, target).logits, expected)
        with llama.ablate([(2, 3)]):
            expected = llama.network(source).logits
        torch.testing.assert_close(llama.without_heads([(2, 3)]).network(source).logits, expected)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tiny-bert", {"heads": [(3, 0)]}, "layers 1 to 2"),
        ("tiny-bert", {"heads": [(1, 4)]}, "heads 0 to 3"),
        ("tiny-bert", {"layers": [0]}, "layers 1 to 2"),
        ("tiny-bert", {"stack": "decoder"}, 'no stack "decoder"'),
        ("tiny-bert", {"heads": [(1, 0)], "cross": True}, "cross-attention"),
        ("tiny-gru", {"heads": [(1, 0)]}, "recurrent"),
    ],
)
def test_what_does_not_exist_is_an_error(name: str, options: dict[str, Any], message: str) -> None:
    heads = {"sequence": 2} if name == "tiny-bert" else None
    with pytest.raises(InputError, match=message), model(name, heads).ablate(**options):
        pass
