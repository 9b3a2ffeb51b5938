"""Which weights are set from the data before the first step, and who hears of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.sentence_encoder import as_sentence_encoder
from tests.training.starting import CLASSIFY, start

import regard
from regard.baselines import BASELINES
from regard.checkpoint.reading import preprocessing_of
from regard.data.records import ClassifyRecord
from regard.errors import FolderError
from regard.tasks.pair import Pair
from regard.training.engine.distributed.world import World
from regard.training.head_init.initializer import progress_reporter, weight_initializer
from regard.training.head_init.mean_weights import mean_weights
from regard.training.head_init.sentence_encoder import SentenceEncoder
from regard.training.output.metrics_log import TrainingEvent
from regard.training.run import RunContext
from regard.training.settings import Settings

RECORDS = [ClassifyRecord("a good day", "good"), ClassifyRecord("a bad day", "bad"), ClassifyRecord("the day", "so so")]


@pytest.mark.parametrize(
    ("head_init", "baseline", "sets_weights"),
    [("random", None, False), ("probe", None, True), ("contrastive", None, True), ("random", "ngram", True)],
)
def test_weights_are_set_for_a_probe_and_for_a_baseline(
    encoder_folder: Path, head_init: str, baseline: str | None, sets_weights: bool
) -> None:
    model = start(start=as_sentence_encoder(encoder_folder, "mean_tokens"), head_init=head_init)
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer, window=None, overlap=0.0)
    examples = CLASSIFY.examples(RECORDS, preprocessing, labeled=True)
    fitted = BASELINES[baseline] if baseline else None
    found = weight_initializer(CLASSIFY, RECORDS, examples, preprocessing, model, fitted, Settings(), 0)
    assert (found is not None) == sets_weights


@pytest.mark.parametrize(("rank", "expected"), [(0, [("counting", 3, 9)]), (1, [])])
def test_only_the_main_process_reports(rank: int, expected: list[Any], tmp_path: Path) -> None:
    events: list[TrainingEvent] = []
    context = RunContext(tmp_path, torch.device("cpu"), World(rank, 2), progress=events.append)
    progress_reporter(context)("counting", 3, 9)
    assert [(event.values["what"], event.done, event.total) for event in events] == expected


def test_the_mean_of_two_networks(tmp_path: Path) -> None:
    networks = []
    for seed in range(2):
        model = regard.create("tiny-bert", seed=seed)
        model.save(tmp_path / f"{seed}")
        networks.append(model.network.state_dict())
    mean = mean_weights([tmp_path / "0", tmp_path / "1"])
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (networks[0][name] + networks[1][name]) / 2)


def test_other_networks_have_no_mean(tmp_path: Path) -> None:
    regard.create("tiny-bert").save(tmp_path / "0")
    regard.create("tiny-gpt2").save(tmp_path / "1")
    with pytest.raises(FolderError, match="their weights have no mean"):
        mean_weights([tmp_path / "0", tmp_path / "1"])


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("classified", ["auto", "first"])
def test_vectors_are_those_of_the_sentence_encoder(encoder_folder: Path, pooling: str, classified: str) -> None:
    folder = as_sentence_encoder(encoder_folder, pooling)
    texts = ["a good day", "the day", "a very long and bad day " * 60, "the day was long"]
    model = start(Pair(names=("no", "yes")), start=folder, pooling=classified)
    assert model.head_init == "similarity"
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer, window=None, overlap=0.0)
    vectors = SentenceEncoder(
        model.checkpoint.network, preprocessing, model.checkpoint.pooling or "", model.pooling == "mean"
    ).vectors(texts)
    short = [0, 1, 3]  # of a long text, `embed` weighs the windows
    expected = regard.load(folder, device="cpu").embed([texts[row] for row in short], normalize=True)
    np.testing.assert_allclose(vectors[short], expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
