"""Which weights are set from the data before the first step, and who hears of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.sentence_encoder import as_sentence_encoder
from tests.training.starting import CLASSIFY, start

from regard.baselines import BASELINES
from regard.checkpoint.reading import preprocessing_of
from regard.data.records import ClassifyRecord
from regard.training.engine.distributed.world import World
from regard.training.head_init.initializer import progress_reporter, weight_initializer
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
