"""The baseline `static`: one vector per token, and their mean for a text. No attention, so it is very fast.

How it works:

1. Every entry of the vocabulary is passed through a pretrained encoder once, alone, as a text of its own; words of the
   training texts that its tokenizer would split become entries too (Model2Vec, https://github.com/MinishLab/model2vec).
2. The vectors are rotated and shortened by principal component analysis.
3. Frequent words count less (SIF, Arora et al. 2017, https://openreview.net/forum?id=SyK00v5xx): a / (a + frequency).
4. A text is the mean of the vectors of its tokens. A small network on top of it is trained for the task, and the
   vectors with it.

Word vectors (`regard vectors`) may take the place of the encoder's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers
import torch
from tokenizers import models, normalizers, pre_tokenizers, processors
from torch import Tensor

from regard.baselines.ngram import Report
from regard.baselines.vector_cache import cached_vectors
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.network_tensors import build_on_meta, initial_values, network_key, set_tensors
from regard.checkpoint.source import find_folder
from regard.config import BagConfig
from regard.data.batching.sequences import token_batches
from regard.data.records import Record
from regard.errors import InputError
from regard.model.network import Network
from regard.model.recurrent.networks import RecurrentNetwork
from regard.ragged import Ragged
from regard.tasks.task import Task
from regard.text.tokenizer import Tokenizer
from regard.word_vectors.files import load_vectors

WIDTH = 256  # of the vectors after principal component analysis
SCALE = 1 / 8  # standard deviation of the vectors of texts: small, so that a training step changes them much
HIDDEN = 256  # width of the hidden layer of the classification head
DROPOUT = 0.5
MAX_WORDS = 50_000  # words of the training texts that become entries of the vocabulary
FREQUENCY = 1e-3  # a of SIF
TEXTS_AT_ONCE = 2000
BATCH_TOKENS = 8192
ROLES = ("cls", "bos", "pad", "unk", "eos")  # of the token that is put before each text, so that no text is empty
UNKNOWN = "[UNK]"

Floats = npt.NDArray[np.float32]


def build_static(
    task: Task, records: Sequence[Record], *, start: str | Path, report: Report
) -> tuple[Checkpoint, Tokenizer]:
    """The tokenizer and the vectors of a pretrained model, and a network for them with a new head."""
    texts = [text for record in records for _, text in record.texts]
    if Path(start).expanduser().is_file():
        tokenizer, table = from_word_vectors(Path(start).expanduser())
    else:
        tokenizer, table = from_encoder(start, texts, report)
    counts = token_counts(tokenizer, texts)
    table = weighted(reduced(table, counts, WIDTH), counts)
    table[tokenizer.surrounding_ids[0]] = 0.0
    table *= SCALE / max(pooled_deviation(tokenizer, table, texts), 1e-12)
    config = BagConfig(
        vocabulary=len(table),
        width=table.shape[1],
        hidden=HIDDEN if task.heads else 0,
        pair=task.record.type_name == "pair" and bool(task.heads),
        dropout=DROPOUT,
    )
    network = build_on_meta(config, task.heads)
    names = [name for name, _ in network.named_parameters() if name != "encoder.tokens.weight"]
    values = initial_values(network, names)
    if "heads.sequence.hidden.weight" in values:
        values["heads.sequence.hidden.weight"] /= SCALE
    set_tensors(network, {**values, "encoder.tokens.weight": torch.from_numpy(table)})
    return Checkpoint("static", config, network.eval()), tokenizer


def from_encoder(start: str | Path, texts: Sequence[str], report: Report) -> tuple[Tokenizer, Floats]:
    """The tokenizer of a model, with the words of the texts, and the vector of each entry of its vocabulary."""
    folder = find_folder(start)
    checkpoint = read_folder(folder)
    network = checkpoint.network
    if network.encoder is None or isinstance(network, RecurrentNetwork) or network.reader.depth == 0:
        raise InputError(f"{start} is no encoder, so it has no vectors to take. Use an encoder such as minilm.")
    original = Tokenizer.load(folder)
    words = frequent_words(original, texts)
    before, after = original.surrounding_ids
    first = checkpoint.pooling == "first"
    key = network_key(network, f"first {first}")
    parts: list[Sequence[Sequence[int]]] = [[[number] for number in range(original.size)]]
    parts += [original.ids_batch(words, special=False)] if words else []
    tables = []
    for entries in parts:  # apart, since the words of other texts are others
        sequences = [[*before, *ids, *after] for ids in entries]
        compute = partial(entry_vectors, network, sequences, first=first, report=report)
        tables.append(cached_vectors(sequences, network.config.width, key=key, compute=compute))
    return with_words(original, words), np.concatenate(tables)


def frequent_words(tokenizer: Tokenizer, texts: Sequence[str]) -> list[str]:
    """Words of the texts that a WordPiece tokenizer splits: most frequent first."""
    backend = tokenizer.backend
    if tokenizer.kind != "wordpiece" or backend.pre_tokenizer is None:
        return []
    counts: Counter[str] = Counter()
    for text in texts:
        plain = text if backend.normalizer is None else backend.normalizer.normalize_str(text)
        counts.update(word for word, _ in backend.pre_tokenizer.pre_tokenize_str(plain))
    known = backend.get_vocab()
    fewest = 2 if len(texts) >= TEXTS_AT_ONCE else 1
    longest = backend.model.max_input_chars_per_word
    words = [
        word for word, count in counts.most_common() if count >= fewest and word not in known and len(word) <= longest
    ]
    return words[:MAX_WORDS]


def with_words(tokenizer: Tokenizer, words: Sequence[str]) -> Tokenizer:
    """The tokenizer with more words, and with one special token before each text instead of its own."""
    content = json.loads(tokenizer.to_json())
    if words:
        vocabulary = content["model"]["vocab"]
        first = tokenizer.size
        vocabulary.update({word: first + number for number, word in enumerate(words)})
    content["post_processor"] = None
    backend = tokenizers.Tokenizer.from_str(json.dumps(content))
    role = next((role for role in ROLES if role in tokenizer.special), None)
    if role is not None:
        number = tokenizer.special[role]
        _put_before(backend, str(backend.id_to_token(number)), number)
    return Tokenizer(backend, settings={"tokenizer_class": "PreTrainedTokenizerFast"})


def _put_before(backend: Any, token: str, number: int) -> None:
    backend.post_processor = processors.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A $B:1", special_tokens=[(token, number)]
    )


def from_word_vectors(path: Path) -> tuple[Tokenizer, Floats]:
    """A tokenizer of whole words, and their vectors; unknown words have a vector of zeros."""
    vectors = load_vectors(path)
    words = [word for word in vectors.words if word != UNKNOWN]
    rows = [vectors.rows[word] for word in words]
    backend = tokenizers.Tokenizer(
        models.WordLevel({UNKNOWN: 0, **{word: number for number, word in enumerate(words, start=1)}}, UNKNOWN)
    )
    if all(word == word.lower() for word in words):
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens([UNKNOWN])
    _put_before(backend, UNKNOWN, 0)
    table = np.concatenate((np.zeros((1, vectors.table.shape[1]), np.float32), vectors.table[rows]))
    return Tokenizer(backend, tokens={"unk": UNKNOWN}), table


@torch.inference_mode()
def entry_vectors(network: Network, sequences: Sequence[Sequence[int]], *, first: bool, report: Report) -> Floats:
    """The pooled vector of each sequence."""
    vectors = np.zeros((len(sequences), network.config.width), np.float32)
    done = 0
    for rows in token_batches([len(sequence) for sequence in sequences], BATCH_TOKENS):
        segments = [[0] * len(sequences[row]) for row in rows] if network.config.segments > 1 else None
        batch = Ragged.of([sequences[row] for row in rows], segments=segments)
        hidden_ND: Tensor = network.reader(batch)
        pooled_BD = hidden_ND[batch.first()] if first else batch.mean(hidden_ND)
        vectors[list(rows)] = pooled_BD.float().numpy()
        done += len(rows)
        report("computing the vectors of tokens", done, len(sequences))
    return vectors


def token_counts(tokenizer: Tokenizer, texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """How often each token occurs in the texts."""
    counts = np.zeros(tokenizer.size, np.int64)
    stream: Iterator[str] = iter(texts)
    while part := list(islice(stream, TEXTS_AT_ONCE)):
        for ids in tokenizer.ids_batch(part, special=False):
            np.add.at(counts, ids, 1)
    if not counts.sum():
        raise InputError("the training texts have no tokens: all of them are empty. Give texts with words.")
    return counts


def reduced(table: Floats, counts: npt.NDArray[np.int64], width: int) -> Floats:
    """The principal components of the vectors; of those that occur in the texts, if these are enough."""
    used = table[counts > 0]
    used = used if len(used) > 2 * table.shape[1] else table
    mean = used.mean(0)
    _, _, directions = np.linalg.svd(used - mean, full_matrices=False) if len(used) < 20_000 else _eigen(used - mean)
    result: Floats = ((table - mean) @ directions[:width].T).astype(np.float32)
    return result


def _eigen(centered: Floats) -> tuple[None, None, Floats]:
    """The principal directions of many vectors."""
    _, vectors = np.linalg.eigh(centered.T.astype(np.float64) @ centered)
    return None, None, vectors[:, ::-1].T.astype(np.float32)


def weighted(table: Floats, counts: npt.NDArray[np.int64]) -> Floats:
    """The vectors, shorter the more frequent a token is."""
    frequency = counts / counts.sum()
    result: Floats = (table * (FREQUENCY / (FREQUENCY + frequency))[:, None]).astype(np.float32)
    return result


def pooled_deviation(tokenizer: Tokenizer, table: Floats, texts: Sequence[str]) -> float:
    """The standard deviation of a number of the vectors of texts, so that these can be scaled to 1."""
    sample = texts[:: max(len(texts) // TEXTS_AT_ONCE, 1)]
    means = [table[ids].mean(0) for ids in tokenizer.ids_batch(sample) if ids]
    return float(np.std(np.stack(means), axis=0).mean())
