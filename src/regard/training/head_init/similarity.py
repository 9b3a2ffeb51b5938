"""Training on similarity before text pairs are classified: a sentence encoder teaches itself to compare two texts.

A sentence encoder gives each text a vector, and the cosine of two vectors says how similar their texts are. As a
classifier of pairs it reads both texts in one sequence, which it was never trained to do. So it first learns to predict
the cosine of its own vectors from both texts together. In plain terms, it works as follows:
1. Compute the vector of every text.
2. Make many pairs: each text with its own partner, with partners of other rows that are similar, and with random ones.
3. Train the network, with a temporary head, to predict the cosine of each pair. No label is read.
4. Replace the temporary head by a new one for the labels; ordinary training goes on from here.

Trans-Encoder (Liu et al. 2022, https://arxiv.org/abs/2109.13059) trains sentence encoders to compare texts this way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from regard.baselines.ngram import Report
from regard.data.batching.examples import Examples
from regard.data.records import PairRecord
from regard.model.heads import ClassifierHead
from regard.model.linear import Linear
from regard.model.network import Network
from regard.tasks.classify import weighted_windows
from regard.tasks.pair import Pair, pair_sequences
from regard.text.flat_tokens import Ints
from regard.training.defaults.recipes import LORA, SimilarityTraining
from regard.training.engine.loop import Stopped, fit
from regard.training.head_init.sentence_encoder import SentenceEncoder, Vectors
from regard.training.job import TrainingJob
from regard.training.output.metrics_log import TrainingEvent
from regard.training.plan import plan_job

MAX_ROWS = 4096  # rows whose texts are used
NEAR_FRACTION = 2 / 3  # of the added pairs; the others are random
MAX_NEAR = 16  # the nearest partners of a text that pairs are made of
BLOCK = 512  # rows whose products are computed at once
TASK = Pair(kind="number")
LEARNING = "learning similarity"  # its name in progress events
KEPT_SETTINGS = ("dropout", "weight_decay", "max_grad_norm", "adam_beta1", "adam_eps", "freeze", "lora")  # of the user
Weights = dict[str, Tensor]

_shared: ContextVar[dict[str, Weights] | None] = ContextVar("shared", default=None)


def train_similarity(
    job: TrainingJob,
    records: Sequence[PairRecord],
    encoder: SentenceEncoder,
    training: SimilarityTraining,
    *,
    seed: int,
    report: Report,
) -> None:
    """Train the network of a job, which is that of the encoder, to predict similarity. Its head is not trained."""
    network = job.network
    heads = {id(parameter) for parameter in network.heads.parameters()}
    if all(id(parameter) in heads or not parameter.requires_grad for parameter in network.parameters()):
        return  # a frozen encoder
    key = None if _shared.get() is None else _key(job, records, encoder, training, seed)
    if not _take_shared(key, network):
        examples = similar_pairs(encoder, records, training.pairs, seed=seed, report=report)
        with _temporary_head(network, seed):
            _fit(job, examples, training, seed, report)
        _share(key, network)


@contextmanager
def shared_similarity() -> Iterator[None]:
    """In this block, trainings with the same texts, initial weights and settings learn similarity once."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def similar_pairs(
    encoder: SentenceEncoder, records: Sequence[PairRecord], count: int, *, seed: int, report: Report | None = None
) -> Examples:
    """Pairs of the texts of the records; the target is the cosine of their vectors. Each text is tokenized once."""
    rng = np.random.default_rng(seed)
    if len(records) > MAX_ROWS:
        records = [records[row] for row in rng.permutation(len(records))[:MAX_ROWS]]
    number: dict[str, int] = {}
    for record in records:
        number.setdefault(record.first, len(number))
        number.setdefault(record.second, len(number))
    texts = list(number)
    vectors = encoder.vectors(texts, report=report)
    first = np.array([number[record.first] for record in records])
    second = np.array([number[record.second] for record in records])
    one, other = make_pairs(vectors, first, second, count, rng).T
    tokens = encoder.preprocessing.tokenizer.flat_batch(texts)
    sequences = pair_sequences(tokens.take(one), tokens.take(other), encoder.preprocessing)
    return weighted_windows(sequences, cosines(vectors, one, other))


def cosines(vectors: Vectors, one: Ints, other: Ints) -> Vectors:
    """(P,) the products of vectors of length 1, by their numbers."""
    blocks = (slice(start, start + BLOCK) for start in range(0, len(one), BLOCK))
    return np.concatenate([np.einsum("pd,pd->p", vectors[one[block]], vectors[other[block]]) for block in blocks])


def make_pairs(vectors: Vectors, first: Ints, second: Ints, count: int, rng: np.random.Generator) -> Ints:
    """(count, 2) numbers of texts: each row's own pair, then pairs of its first text with near and random partners."""
    rows = len(first)
    near = min(MAX_NEAR, rows)
    nearest = np.empty((rows, near), np.int64)
    for start in range(0, rows, BLOCK):
        like = vectors[first[start : start + BLOCK]] @ vectors[second].T
        nearest[start : start + BLOCK] = second[np.argpartition(-like, near - 1, axis=1)[:, :near]]
    own = np.stack((first, second), axis=1)
    more = max(count - rows, 0)
    row = np.concatenate([rng.permutation(rows) for _ in range(-(-more // rows))] or [np.empty(0, np.int64)])[:more]
    is_near = rng.random(more) < NEAR_FRACTION
    partner = np.where(is_near, nearest[row, rng.integers(near, size=more)], second[rng.integers(rows, size=more)])
    pairs: Ints = np.concatenate((own, np.stack((first[row], partner), axis=1)))
    return rng.permutation(pairs)[:count]


@contextmanager
def _temporary_head(network: Network, seed: int) -> Iterator[None]:
    """Another output layer of the classification head, of one number; the own one is put back."""
    head = network.heads["sequence"]
    assert isinstance(head, ClassifierHead)
    own = head.output
    generator = torch.Generator().manual_seed(seed)
    output = Linear(own.in_features, 1)
    with torch.no_grad():
        output.weight.normal_(0.0, 0.02, generator=generator)
        output.bias.zero_()
    head.output = output.to(own.weight)
    try:
        yield
    finally:
        head.output = own


def _fit(job: TrainingJob, examples: Examples, training: SimilarityTraining, seed: int, report: Report) -> None:
    """Train on the pairs once, on this process alone: all ranks do the same. Nothing is written."""
    texts = min(training.per_step, len(examples))
    settings = replace(
        job.settings,
        steps=None,
        epochs=1.0,
        lr=training.lr * (texts / training.per_step) ** 0.5 * (LORA if job.settings.lora.rank else 1),
        batch_tokens=max(int(texts * examples.lengths.mean()), int(examples.lengths.max())),
        batch_size=None,
        micro_batch_tokens=None,
        schedule="linear",
        warmup=0.1,
        adam_beta2=0.999,
        layerwise_lr_decay=1.0,
        rdrop=0.0,
        rdrop_start=0.0,
        repeats=1,
        seed=seed,
        compile="no",
        fsdp=False,
    )

    def progress(event: TrainingEvent) -> None:
        if event.kind == "log":
            report(LEARNING, event.done, event.total or event.done)

    similarity = plan_job(job.network, TASK, examples, settings, job.folder, progress=progress)
    try:
        fit(replace(similarity, writes_files=False))
    except Stopped as stop:
        words = "stopped while the network learned similarity, before the first training step; nothing is saved yet."
        raise Stopped(words, signal=stop.signal, advice="Start it again.") from None


def _key(
    job: TrainingJob, records: Sequence[PairRecord], encoder: SentenceEncoder, training: SimilarityTraining, seed: int
) -> str:
    """What decides the weights that are learned."""
    settings = [getattr(job.settings, name) for name in KEPT_SETTINGS]
    digest = hashlib.sha256(repr((training, seed, job.dtype, encoder.pooling, encoder.averaged, settings)).encode())
    for record in records:
        digest.update(repr((record.first, record.second)).encode())
    for name, weight in _weights(job.network).items():
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _weights(network: Network) -> Weights:
    """All weights but those of the head for the labels."""
    return {name: weight for name, weight in network.state_dict().items() if not name.startswith("heads.sequence.")}


def _take_shared(key: str | None, network: Network) -> bool:
    """Set the weights that were learned before, if there are any; whether there are."""
    weights = (_shared.get() or {}).get(key or "")
    if weights is None:
        return False
    network.load_state_dict(weights, strict=False)
    return True


def _share(key: str | None, network: Network) -> None:
    shared = _shared.get()
    if shared is not None and key is not None:
        shared[key] = {name: weight.detach().cpu().clone() for name, weight in _weights(network).items()}
