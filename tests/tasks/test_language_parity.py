"""Losses and gradients of the language-model tasks against transformers, on the same weights and the same words."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from regard.checkpoint.families import family_for
from regard.checkpoint.folder import read_folder
from regard.checkpoint.write_folder import export_tensors
from regard.data.batching.examples import Inputs
from regard.data.corpus.masking import IGNORE, MaskSettings
from regard.ragged import Ragged
from regard.tasks.language.causal import Causal
from regard.tasks.language.masked import Masked
from regard.tasks.task import Task

LENGTHS = (33, 7, 2, 60, 18)
V = 50
NEAR: dict[str, Any] = {"atol": 1e-5, "rtol": 1e-5}
SIZES: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
MASKS = MaskSettings(4, V, (0, 1, 2, 3, 4), rate=0.3)


def bert() -> transformers.BertConfig:
    return transformers.BertConfig(**SIZES)


def gpt2() -> transformers.GPT2Config:
    sizes: dict[str, Any] = {"vocab_size": V, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    return transformers.GPT2Config(
        **sizes, bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )


def llama() -> transformers.LlamaConfig:
    sizes = {name: size for name, size in SIZES.items() if "dropout" not in name}
    return transformers.LlamaConfig(**{**sizes, "num_attention_heads": 4}, num_key_value_heads=2)


CASES: dict[str, tuple[Callable[[], Any], Any, Task]] = {
    "BertForMaskedLM": (bert, transformers.BertForMaskedLM, Masked(MASKS)),
    "BertForPreTraining": (bert, transformers.BertForPreTraining, Masked(MASKS, follows=True)),
    "GPT2LMHeadModel": (gpt2, transformers.GPT2LMHeadModel, Causal()),
    "LlamaForCausalLM": (llama, transformers.LlamaForCausalLM, Causal()),
}


def batch(task: Task) -> Inputs:
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(5, V, (sum(LENGTHS),), generator=generator)
    kinds = (torch.arange(sum(LENGTHS)) % 2) if task.name == "masked" else None
    pairs = {"next": torch.tensor([0, 1, 1, 0, 1])} if task.heads.get("next") else {}
    tokens = Ragged.from_flat(ids, LENGTHS, segments=kinds)
    by_token = {"learn": torch.zeros(len(ids), dtype=torch.int8)}
    return Inputs(tokens, by_sequence=pairs, by_token=by_token, rows=len(LENGTHS))


def padded(inputs: Inputs, flat: Tensor, filling: int) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(inputs.tokens.split(flat), batch_first=True, padding_value=filling)


def theirs(model: Any, inputs: Inputs, task: Task) -> Tensor:
    """Their loss of the same batch, padded."""
    flat = inputs.tokens.ids.new_full((inputs.tokens.tokens,), IGNORE)
    if task.name == "masked":
        assert inputs.at is not None
        flat[inputs.at] = inputs["words"]
    else:
        flat = inputs.tokens.ids  # they shift it themselves
    options: dict[str, Tensor] = {
        "input_ids": padded(inputs, inputs.tokens.ids, 0),
        "attention_mask": padded(inputs, torch.ones_like(inputs.tokens.ids), 0),
        "labels": padded(inputs, flat, IGNORE),
    }
    if inputs.tokens.segments is not None:
        options["token_type_ids"] = padded(inputs, inputs.tokens.segments, 0)
    if "next" in inputs.by_sequence:
        options["next_sentence_label"] = inputs["next"]
    loss: Tensor = model(**options).loss
    return loss


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    config, kind, task = CASES[name]
    torch.manual_seed(0)
    model = kind(config()).eval()
    model.save_pretrained(tmp_path)
    checkpoint = read_folder(tmp_path, heads=task.heads)
    inputs = task.prepare(batch(task))
    loss = task.loss(checkpoint.network(inputs.tokens, at=inputs.at), inputs)
    mean = loss.sum / loss.count
    mean.backward()
    expected = theirs(model, inputs, task)
    expected.backward()
    torch.testing.assert_close(mean, expected, **NEAR)
    twin = copy.deepcopy(checkpoint.network)
    for mine, own in zip(twin.parameters(), checkpoint.network.parameters(), strict=True):
        mine.data = torch.zeros_like(own) if own.grad is None else own.grad
    ours = export_tensors(replace(checkpoint, network=twin), family_for(checkpoint.family, checkpoint.config))
    targets = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    assert set(targets) <= set(ours)
    for name_, grad in targets.items():
        torch.testing.assert_close(ours[name_], grad, **NEAR, msg=partial("{}: {}".format, name_))


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_a_batch_gives_the_sums_of_its_sequences(name: str, tmp_path: Path) -> None:
    """Sums over sequences are the loss of the batch, and rows of a batch are told apart."""
    config, kind, task = CASES[name]
    torch.manual_seed(0)
    kind(config()).save_pretrained(tmp_path)
    network = read_folder(tmp_path, heads=task.heads).network
    inputs = task.prepare(batch(task))
    output = network(inputs.tokens, at=inputs.at)
    message = task.row_outputs(output, inputs)
    words = replace(task, follows=False) if isinstance(task, Masked) else task
    loss = words.loss(output, inputs)
    at = 2 if isinstance(task, Masked) else 0
    assert sum(row[at] for row in message) == pytest.approx(float(loss.sum), rel=1e-5)
    assert sum(row[1] for row in message) == int(loss.count)
    blank = task.prepare(batch(task).without_targets())
    assert int(words.loss(network(blank.tokens, at=blank.at), blank).count) == 0
