"""Outputs of rows of ids: batched as single, with the shapes of the heads, and clear errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from tests.predict.models import TINY, random_checkpoint, random_rows

import regard
from regard.errors import InputError
from regard.predict import Model

BERT, T5, ROBERTA, GPT2 = "tiny-bert", "tiny-t5", "tiny-roberta", "tiny-gpt2"


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("batch_tokens", [1, 30, 10_000])
def test_batched_is_single_in_the_order_given(name: str, batch_tokens: int) -> None:
    model = Model(random_checkpoint(name))
    ids, targets = random_rows([3, 20, 1, 9, 9, 1, 14]), random_rows([2, 5, 1, 7, 1, 3, 4], 1)
    both = model.config.kind == "encoder-decoder"
    result = model.outputs(ids, decoder_ids=targets if both else None, batch_tokens=batch_tokens)
    assert len(result) == len(ids)
    for sequence, target, output in zip(ids, targets, result, strict=True):
        (single,) = model.outputs([sequence], decoder_ids=[target] if both else None)
        for field in dataclasses.fields(single):
            one, other = getattr(single, field.name), getattr(output, field.name)
            assert (one is None) == (other is None)
            assert one is None or (one.shape == other.shape and torch.allclose(one, other, atol=1e-5)), field.name


@pytest.mark.parametrize(
    ("name", "heads", "shapes"),
    [
        ("tiny-bert", {}, {"hidden": (5, 32)}),
        ("tiny-bert", {"pooled": 0}, {"hidden": (5, 32), "pooled": (32,)}),
        ("tiny-bert", {"masked": 0}, {"hidden": (5, 32), "logits": (5, 100)}),
        (
            "tiny-bert",
            {"masked": 0, "next": 0},
            {"hidden": (5, 32), "logits": (5, 100), "pooled": (32,), "next_sentence": (2,)},
        ),
        ("tiny-bert", {"next": 0}, {"hidden": (5, 32), "pooled": (32,), "next_sentence": (2,)}),
        ("tiny-bert", {"sequence": 3}, {"hidden": (5, 32), "logits": (3,), "pooled": (32,)}),
        ("tiny-bert", {"token": 4}, {"hidden": (5, 32), "logits": (5, 4)}),
        ("tiny-bert", {"span": 0}, {"hidden": (5, 32), "logits": (5, 2)}),
        ("tiny-electra", {"replaced": 0}, {"hidden": (5, 32), "logits": (5, 1)}),
        ("tiny-gpt2", {"language": 0}, {"hidden": (5, 32), "logits": (5, 100)}),
        ("tiny-t5", {"language": 0}, {"hidden": (3, 32), "logits": (3, 100), "memory": (5, 32)}),
    ],
)
def test_shapes_by_head(name: str, heads: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> None:
    model = Model(random_checkpoint(name, heads))
    targets = [[1, 2, 3], [4]] if name == "tiny-t5" else None
    output, other = model.outputs([[5, 6, 7, 8, 9], [3]], decoder_ids=targets)
    results = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    assert {name: tuple(value.shape) for name, value in results.items() if value is not None} == shapes
    assert other.hidden.shape == (1, 32)


def test_one_token_each_is_not_taken_for_one_text_of_tokens() -> None:
    """As many logits of texts as there are tokens, and still one row of them a text."""
    outputs = Model(random_checkpoint("tiny-bert", {"sequence": 3})).outputs([[5], [6], [7]])
    assert [tuple(output.logits.shape) for output in outputs] == [(3,)] * 3


def test_ids_may_be_arrays_and_tensors() -> None:
    model = Model(random_checkpoint("tiny-bert"))
    expected = [output.hidden for output in model.outputs([[5, 6], [7, 8]])]
    for ids in (np.array([[5, 6], [7, 8]]), torch.tensor([[5, 6], [7, 8]]), ([np.int64(5), 6], torch.tensor([7, 8]))):
        result = model.outputs(ids)  # type: ignore[arg-type]
        assert all(torch.equal(one.hidden, other) for one, other in zip(result, expected, strict=True))


def test_segments_are_heeded() -> None:
    model = Model(random_checkpoint("tiny-bert"))
    plain, zeros, ones = (
        model.outputs([[5, 6], [7]], segments=kinds) for kinds in (None, [[0, 0], [0]], [[0, 1], [1]])
    )
    assert torch.equal(plain[0].hidden, zeros[0].hidden)
    assert not torch.allclose(plain[0].hidden, ones[0].hidden, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (BERT, {"ids": []}, "ids is an empty list; give at least one sequence."),
        (BERT, {"ids": [[1], []]}, "ids: sequence 1 is empty; give it at least one id."),
        (
            BERT,
            {"ids": [[1], [5, 100, 7]]},
            "sequence 1, position 1: id 100 is outside the vocabulary, whose ids are 0 to 99",
        ),
        (BERT, {"ids": [[1, 2, -3]]}, "sequence 0, position 2: id -3 is outside the vocabulary"),
        (BERT, {"ids": [[1], [1] * 513]}, "sequence 1 has 513 tokens; the limit of this network is 512. Split it into"),
        (ROBERTA, {"ids": [[1] * 129]}, "sequence 0 has 129 tokens; the limit of this network is 128."),
        (BERT, {"ids": [1, 2]}, "ids must be a list of sequences, such as [[5, 6], [7]], not [1, 2]."),
        (BERT, {"ids": np.array([1, 2])}, "ids must be a list of sequences"),
        (BERT, {"ids": 5}, "ids must be a list of sequences"),
        (BERT, {"ids": [[1.5]]}, "ids: sequence 0 holds something else than whole numbers"),
        (BERT, {"ids": ["ab"]}, "ids: sequence 0 holds something else than whole numbers"),
        (BERT, {"ids": [[1, None]]}, "ids: sequence 0 holds something else than whole numbers"),
        (BERT, {"ids": [[1]], "decoder_ids": [[1]]}, "a model of kind encoder takes no decoder_ids."),
        (GPT2, {"ids": [[1]], "decoder_ids": [[1]]}, "a model of kind decoder takes no decoder_ids."),
        (T5, {"ids": [[1]]}, "a model of kind encoder-decoder needs decoder_ids: the target of each sequence so far"),
        (T5, {"ids": [[1]], "decoder_ids": []}, "decoder_ids is an empty list"),
        (T5, {"ids": [[1]], "decoder_ids": [[1], [2]]}, "1 sequence of ids but 2 of decoder_ids; give one each."),
        (
            T5,
            {"ids": [[1], [2]], "decoder_ids": [[1], [100]]},
            "decoder_ids: sequence 1, position 0: id 100 is outside",
        ),
        ("tiny-bart", {"ids": [[1]], "decoder_ids": [[1] * 129]}, "decoder_ids: sequence 0 has 129 tokens"),
        (BERT, {"ids": [[1]], "segments": []}, "1 sequence of ids but 0 of segments; give one for each."),
        (BERT, {"ids": [[1, 2], [3]], "segments": [[0, 1], []]}, "sequence 1 has 1 ids but 0 segments"),
        (
            BERT,
            {"ids": [[1], [3, 4]], "segments": [[0], [0, 2]]},
            "segments: sequence 1 holds a number outside 0 to 1.",
        ),
        (ROBERTA, {"ids": [[1]], "segments": [[0, 0]]}, "sequence 0 has 1 ids but 2 segments; give one per token."),
        (GPT2, {"ids": [[1]], "segments": [[0]]}, "segments were given, but this network has none; leave them out."),
        (BERT, {"ids": [[1]], "batch_tokens": 0}, "batch_tokens is 0, expected at least 1 token."),
    ],
)
def test_ids_that_cannot_be_read_are_reported(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Model(random_checkpoint(name)).outputs(**options)
    assert message in str(caught.value)


def test_batches_of_pairs_are_bounded_by_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(random_checkpoint("tiny-t5"))
    sizes: list[int] = []
    forward = model.network.forward

    def counted(batch: regard.Ragged, target: regard.Ragged) -> Any:
        sizes.append(batch.tokens + target.tokens)
        return forward(batch, target)

    monkeypatch.setattr(model.network, "forward", counted)
    assert len(model.outputs([[5]] * 40, decoder_ids=[[0] * 30] * 40, batch_tokens=100)) == 40
    assert max(sizes) <= 100
