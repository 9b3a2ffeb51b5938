"""From text files to word vectors: read, count, train."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from regard.errors import InputError, did_you_mean, setting
from regard.progress import OnProgress
from regard.word_vectors.corpus import WordCorpus, read_words
from regard.word_vectors.glove import Glove, GloveSettings, count_cooccurrences
from regard.word_vectors.negative_sampling import NegativeSampling, NegativeSamplingSettings
from regard.word_vectors.vectors import WordVectors

KINDS = ("skipgram", "cbow", "glove")
EPOCHS = {"skipgram": 5, "cbow": 10, "glove": 15}
RATES = {"skipgram": 0.1, "cbow": 0.1, "glove": 0.1}


@dataclass(frozen=True)
class VectorSettings:
    """Training settings of word vectors. None is chosen by the kind."""

    kind: Literal["skipgram", "cbow", "glove"] = "skipgram"
    width: int = 100
    window: int = 5
    min_count: int = 5
    epochs: int | None = None
    max_words: int | None = None  # read only the first words of the text
    negatives: float = 5.0
    subsample: float = 1e-4
    lr: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f'{setting("kind")} "{self.kind}" is not known.{did_you_mean(self.kind, KINDS)}')


@dataclass(frozen=True)
class TrainedVectors:
    """Trained vectors, with their settings and the size of the text."""

    vectors: WordVectors
    settings: dict[str, Any]
    words_read: int
    words_kept: int  # occurrences of words that have a vector
    seconds: float
    cpu_seconds: float


def train_vectors(
    files: Sequence[str | Path],
    settings: VectorSettings | None = None,
    *,
    encoding: str | None = None,
    progress: OnProgress | None = None,
) -> TrainedVectors:
    """Read the files once, then train; the same files, settings and seed give the same vectors."""
    settings = settings or VectorSettings()
    began, cpu = time.monotonic(), time.process_time()
    text = read_words(
        files,
        max_words=settings.max_words,
        min_count=settings.min_count,
        encoding=encoding,
        progress=progress,
    )
    epochs, rate = settings.epochs or EPOCHS[settings.kind], settings.lr or RATES[settings.kind]
    if settings.kind == "glove":
        table = _glove(text, settings, epochs, rate, progress)
    else:
        how = NegativeSamplingSettings(
            kind=settings.kind,
            width=settings.width,
            window=settings.window,
            negatives=settings.negatives,
            subsample=settings.subsample,
            epochs=epochs,
            lr=rate,
            seed=settings.seed,
            threads=torch.get_num_threads(),
        )
        table = NegativeSampling(text.counts, how).train(text.ids, text.bounds, progress=progress)
    return TrainedVectors(
        WordVectors(text.words, table),
        asdict(settings) | {"epochs": epochs, "lr": rate},
        text.words_read,
        len(text.ids),
        time.monotonic() - began,
        time.process_time() - cpu,
    )


def _glove(text: WordCorpus, settings: VectorSettings, epochs: int, rate: float, progress: OnProgress | None) -> Any:
    pairs = count_cooccurrences(text.ids, text.bounds, len(text.words), window=settings.window, progress=progress)
    if pairs.dropped:
        warnings.warn(
            f"{pairs.dropped:,} of the rarest word pairs were dropped to limit memory; "
            f"{len(pairs):,} are used. A larger min_count or a smaller window gives fewer pairs.",
            stacklevel=3,
        )
    enough = float(
        np.clip(text.ids.size / 1e6, 1, 100)
    )  # the 100 of the paper is for corpora of 100 million words and more
    how = GloveSettings(width=settings.width, epochs=epochs, lr=rate, x_max=enough, seed=settings.seed)
    return Glove(len(text.words), how).train(pairs, progress=progress)
