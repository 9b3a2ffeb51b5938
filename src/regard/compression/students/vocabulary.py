"""A smaller vocabulary: the tokens that texts use, with all single characters as a fallback for other words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

import tokenizers
import torch
from torch import Tensor, nn

from regard.checkpoint.folder import Checkpoint
from regard.model.transformer import Transformer
from regard.text.tokenizer import Tokenizer

CHUNK = 1024  # texts that are tokenized at once


def can_trim(tokenizer: Tokenizer, checkpoint: Checkpoint) -> bool:
    """Whether tokens can be removed: from a WordPiece vocabulary, of a network without a language model head."""
    language = any(name in checkpoint.network.heads for name in ("masked", "language"))
    return tokenizer.kind.lower() == "wordpiece" and not language and isinstance(checkpoint.network, Transformer)


def trim_vocabulary(
    checkpoint: Checkpoint, tokenizer: Tokenizer, texts: Iterable[str], *, max_tokens: int | None = None
) -> tuple[Checkpoint, Tokenizer]:
    """The network and the tokenizer with the tokens that occur in the texts, special tokens and single characters.

    max_tokens: keep at most so many, special tokens, single ASCII characters and those that occur most often.
    """
    counts: Counter[int] = Counter()
    stream = iter(texts)
    while chunk := list(islice(stream, CHUNK)):
        for ids in tokenizer.ids_batch(chunk, special=True):
            counts.update(ids)
    content: dict[str, Any] = json.loads(tokenizer.backend.to_str())
    vocabulary: dict[str, int] = content["model"]["vocab"]
    special = {item["content"] for item in content.get("added_tokens", ())}
    prefix = content["model"].get("continuing_subword_prefix") or ""
    single = {token for token in vocabulary if len(token.removeprefix(prefix)) == 1}
    used = {token for token, old in vocabulary.items() if counts[old]} | single | special
    if max_tokens is not None and len(used) > max_tokens:
        needed = special | {token for token in single if token.isascii()}
        ranked = sorted(used, key=lambda token: (token not in needed, -counts[vocabulary[token]], vocabulary[token]))
        used = set(ranked[:max_tokens])
    chosen = [(token, old) for token, old in sorted(vocabulary.items(), key=lambda item: item[1]) if token in used]
    new_ids = {token: number for number, (token, _) in enumerate(chosen)}
    content["model"]["vocab"] = new_ids
    _renumber(content, vocabulary, new_ids)
    trimmed = Tokenizer(
        tokenizers.Tokenizer.from_str(json.dumps(content)), tokens=tokenizer._tokens, settings=tokenizer.settings
    )
    return _with_rows(checkpoint, [old for _, old in chosen]), trimmed


def teacher_ids(teacher: Tokenizer, student: Tokenizer) -> Tensor:
    """(V,) the teacher's id of each id of a student whose tokens are some of the teacher's."""
    theirs: dict[str, int] = teacher.backend.get_vocab()
    ours: dict[str, int] = student.backend.get_vocab()
    ids = torch.zeros(student.size, dtype=torch.int64)
    for token, number in ours.items():
        ids[number] = theirs[token]
    return ids


def _renumber(content: dict[str, Any], vocabulary: dict[str, int], new_ids: dict[str, int]) -> None:
    """New ids for added tokens and for those that a post-processor adds."""
    for item in content.get("added_tokens", ()):
        item["id"] = new_ids[item["content"]]
    processor = content.get("post_processor") or {}
    for name in ("cls", "sep"):
        if isinstance(processor.get(name), list):
            processor[name] = [processor[name][0], new_ids[processor[name][0]]]
    tokens_by_id = {old: token for token, old in vocabulary.items()}
    for item in (processor.get("special_tokens") or {}).values():
        item["ids"] = [new_ids[tokens_by_id[old]] for old in item["ids"]]


def _with_rows(checkpoint: Checkpoint, rows: list[int]) -> Checkpoint:
    """The network with these rows of its embedding table."""
    network = checkpoint.network
    assert isinstance(network, Transformer)
    assert network.encoder is not None
    table = network.encoder.embeddings.tokens
    smaller = nn.Embedding(len(rows), table.embedding_dim)
    with torch.no_grad():
        smaller.weight.copy_(table.weight[torch.tensor(rows)])
    network.encoder.embeddings.tokens = smaller
    network.config = replace(network.config, vocabulary=len(rows))
    hf = {name: value for name, value in checkpoint.hf_config.items() if name not in ("vocab_size", "pad_token_id")}
    return replace(checkpoint, config=network.config, hf_config=hf)
