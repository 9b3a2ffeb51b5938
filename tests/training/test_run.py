"""The context of a run: its device, its rank, and who is informed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.training.engine.distributed.world import World
from regard.training.output.metrics_log import TrainingEvent
from regard.training.run import RunContext

CPU = torch.device("cpu")


def test_one_process_is_the_main_process(tmp_path: Path) -> None:
    context = RunContext.join(tmp_path, CPU, resume=True)
    assert (context.folder, context.device, context.resume) == (tmp_path, CPU, True)
    assert context.world == World(0, 1)


@pytest.mark.parametrize(("rank", "events"), [(0, 1), (1, 0)])
def test_only_the_main_process_reports(tmp_path: Path, rank: int, events: int) -> None:
    reported: list[TrainingEvent] = []
    RunContext(tmp_path, CPU, World(rank, 2), progress=reported.append).report(TrainingEvent("log", 1, 2))
    assert reported == [TrainingEvent("log", 1, 2)] * events
