"""Tiny random models of transformers, saved, and the same folders opened here."""

from typing import Any

import pytest
import tokenizers
import torch
from tests.references import transformers

import regard
from regard.checkpoint.source import from_preset
from regard.predict import Model
from regard.text.tokenizer import Tokenizer

PROMPTS = [[5, 9, 31], [7], [11, 3, 8, 8, 20, 41, 2 + 3], [40, 6]]
IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BART: dict[str, Any] = {
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
}
T5: dict[str, Any] = {
    "vocab_size": 50,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 3,
    "decoder_start_token_id": 0,
}
MADE = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=64, **IDS)
    ),
    "llama": lambda: transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            **IDS,
        )
    ),
    "t5": lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)),
    "bart": lambda: transformers.BartForConditionalGeneration(transformers.BartConfig(**BART)),
    "marian": lambda: transformers.MarianMTModel(
        transformers.MarianConfig(
            **BART, pad_token_id=0, decoder_start_token_id=0, eos_token_id=3, forced_eos_token_id=3
        )
    ),
    "pegasus": lambda: transformers.PegasusForConditionalGeneration(
        transformers.PegasusConfig(**BART, scale_embedding=True)
    ),
}


class Peer:
    """transformers' generate on left-padded prompts (right-padded sources), answered as lists without padding."""

    def __init__(self, model):
        self.model = model
        self.both = model.config.is_encoder_decoder

    def __call__(self, prompts, **settings):
        start = 1 if self.both else max(map(len, prompts))
        return [self.trim(row) for row in self.generate(prompts, **settings).sequences[:, start:].tolist()]

    def scores(self, prompts, **settings):
        return self.generate(prompts, output_scores=True, **settings).sequences_scores

    def generate(self, prompts, **settings):
        longest = max(map(len, prompts))
        padded = [
            row + [0] * (longest - len(row)) if self.both else [0] * (longest - len(row)) + row for row in prompts
        ]
        mask = [
            [1] * len(row) + [0] * (longest - len(row)) if self.both else [0] * (longest - len(row)) + [1] * len(row)
            for row in prompts
        ]
        settings = {"do_sample": False, "num_beams": 1, **settings}
        return self.model.generate(
            torch.tensor(padded), attention_mask=torch.tensor(mask), return_dict_in_generate=True, **settings
        )

    def trim(self, ids):
        end = self.model.generation_config.eos_token_id
        return ids[: ids.index(end) + 1] if end in ids else ids


def made(name, folder):
    torch.manual_seed(0)
    model = MADE[name]().eval()
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if "embed_positions" not in path or name == "bart":
                parameter.normal_(0, 0.3) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
    model.tie_weights()
    end_some(model)
    model.save_pretrained(folder)
    return Peer(model), regard.load(folder)


def end_some(model):
    """Make that token the end which comes early for some of the prompts and never for others."""
    peer, settings = Peer(model), model.generation_config
    settings.eos_token_id = settings.forced_eos_token_id = None
    generate = peer(PROMPTS, max_new_tokens=20)
    tokens = sorted({token for row in generate for token in row[2:]})
    end = min(tokens, key=lambda token: abs(sum(token in row for row in generate) - len(generate) / 2))
    assert 0 < sum(end in row for row in generate) < len(generate)
    model.config.eos_token_id = settings.eos_token_id = end
    if type(model).__name__.startswith(("Bart", "Marian", "Pegasus")):
        settings.forced_eos_token_id = end


@pytest.fixture(scope="session", params=MADE)
def both(request, tmp_path_factory):
    """(theirs, ours) of every family that generates."""
    return made(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def decoder(tmp_path_factory):
    return made("gpt2", tmp_path_factory.mktemp("decoder"))


@pytest.fixture(scope="session")
def prompts():
    return [list(row) for row in PROMPTS]


def letters(size=100):
    """A tokenizer of single letters, the 100 characters from the space on."""
    vocabulary = {chr(32 + number): number for number in range(size)}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    backend.decoder = tokenizers.decoders.Fuse()
    return Tokenizer(backend)


def lettered(name="tiny-gpt2", seed=0, size=100):
    checkpoint = from_preset(name, seed=seed)
    for parameter in checkpoint.network.parameters():
        parameter.data *= 8.0
    return Model(checkpoint, letters(size))


@pytest.fixture(scope="session", name="lettered")
def lettered_fixture():
    return lettered
