"""Tiny random networks, tokenizers of whole words and rows of ids."""

from __future__ import annotations

import dataclasses

import tokenizers
import torch

from regard.checkpoint.check_tensors import saved_tensors
from regard.checkpoint.families import PRESETS, preset
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.config import ModelConfig
from regard.text.tokenizer import Tokenizer

TINY = [name for name in PRESETS if name.startswith("tiny-")]

TEXTS = [
    "A man is eating food.",
    "hi",
    "The quick brown fox jumps over the lazy dog, again and again, until the evening comes and everybody goes home.",
    "naïve café 東京 😀",
    "A man eats something.",
]

LONG = " ".join(f"word{number} and then" for number in range(150))


def random_checkpoint(name: str, heads: dict[str, int] | None = None, *, longest: int | None = None) -> Checkpoint:
    """A tiny network whose weights are spread widely enough that every part matters."""
    chosen = preset(name)
    config = chosen.config
    if longest is not None:
        assert isinstance(config, ModelConfig)
        config = dataclasses.replace(config, positions=dataclasses.replace(config.positions, max_tokens=longest))
    network = build_on_meta(config, chosen.heads if heads is None else heads)
    generator = torch.Generator().manual_seed(3)
    sampled = {
        path: torch.randn(tensor.shape, generator=generator) * 0.3 for path, tensor in saved_tensors(network).items()
    }
    set_tensors(network, sampled)
    return Checkpoint(chosen.family, config, network.eval())


def word_tokenizer(*, special: bool) -> Tokenizer:
    """A tokenizer of 100 whole words, w0 to w97, with or without special tokens around a text."""
    vocabulary = {"[CLS]": 0, "[SEP]": 1} | {f"w{number}": number + 2 for number in range(98)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if special:
        backend.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
        )
    return Tokenizer(backend)


def word_text(count: int, *, start: int = 0) -> str:
    return " ".join(f"w{(start + 7 * number) % 98}" for number in range(count))


def random_rows(lengths: list[int], seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(100, (length,), generator=generator).tolist() for length in lengths]
