"""From text files to vectors of words: read, count, learn."""

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
from regard.word_vectors.corpus import WordText, read_words
from regard.word_vectors.glove import Glove, GloveSettings, count_pairs
from regard.word_vectors.negative_sampling import NegativeSampling, NegativeSettings
from regard.word_vectors.vectors import Vectors, lean_on_parts

KINDS = ("skipgram", "cbow", "glove")
EPOCHS = {"skipgram": 5, "cbow": 10, "glove": 15}
RATES = {"skipgram": 0.1, "cbow": 0.1, "glove": 0.1}


@dataclass(frozen=True)
class VectorSettings:
    """How vectors are learned. What is None is chosen by the kind, or by the text."""

    kind: Literal["skipgram", "cbow", "glove"] = "skipgram"
    width: int = 100
    window: int = 5
    min_count: int = 5
    epochs: int | None = None
    words: int | None = None  # the first so many words of the text
    phrases: tuple[float, ...] = ()  # thresholds of the passes that join phrases; none unless told
    lean: float = 20.0  # how much a phrase seen seldom leans on its words: as much as so many sights of its own
    negatives: float = 5.0
    subsample: float = 1e-4
    rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f'{setting("kind")} "{self.kind}" is not known.{did_you_mean(self.kind, KINDS)}')


@dataclass(frozen=True)
class Learned:
    """The vectors, and what they were learned from."""

    vectors: Vectors
    settings: dict[str, Any]
    read: int  # words of the text
    kept: int  # of them, those frequent enough to have a vector
    seconds: float
    cpu_seconds: float


def learn_vectors(
    files: Sequence[str | Path],
    settings: VectorSettings | None = None,
    *,
    encoding: str | None = None,
    progress: OnProgress | None = None,
) -> Learned:
    """Read the files once, then learn; the same files, settings and seed give the same vectors."""
    given = settings or VectorSettings()
    began, cpu = time.monotonic(), time.process_time()
    text = read_words(
        files,
        most=given.words,
        min_count=given.min_count,
        phrases=given.phrases,
        encoding=encoding,
        progress=progress,
    )
    epochs, rate = given.epochs or EPOCHS[given.kind], given.rate or RATES[given.kind]
    if given.kind == "glove":
        table = _glove(text, given, epochs, rate, progress)
    else:
        how = NegativeSettings(
            kind=given.kind,
            width=given.width,
            window=given.window,
            negatives=given.negatives,
            subsample=given.subsample,
            epochs=epochs,
            rate=rate,
            seed=given.seed,
            threads=torch.get_num_threads(),
        )
        table = NegativeSampling(text.counts, how).learn(text.ids, text.bounds, progress=progress)
    vectors = Vectors(text.words, table)
    if given.phrases and given.lean > 0:
        vectors = lean_on_parts(vectors, text.counts, given.lean)
    return Learned(
        vectors,
        asdict(given) | {"epochs": epochs, "rate": rate},
        text.seen,
        len(text.ids),
        time.monotonic() - began,
        time.process_time() - cpu,
    )


def _glove(text: WordText, given: VectorSettings, epochs: int, rate: float, progress: OnProgress | None) -> Any:
    pairs = count_pairs(text.ids, text.bounds, len(text.words), window=given.window, progress=progress)
    if pairs.forgotten:
        warnings.warn(
            f"{pairs.forgotten:,} of the lightest pairs of words were forgotten, so that memory stays bounded; "
            f"{len(pairs):,} are learned from. A greater min count or a smaller window needs fewer.",
            stacklevel=3,
        )
    enough = float(np.clip(text.ids.size / 1e6, 1, 100))  # 100 is for corpora of a hundred million words and more
    how = GloveSettings(width=given.width, epochs=epochs, rate=rate, enough=enough, seed=given.seed)
    return Glove(len(text.words), how).learn(pairs, progress=progress)
