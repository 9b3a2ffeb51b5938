"""Ranks: one process alone, and two processes as torchrun starts them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.helpers import run_ranks

from regard.checkpoint.source import from_preset
from regard.training.engine.distributed.world import World, is_main_process, join_process_group, leave_process_group

CPU = torch.device("cpu")
RANK = """
import json
from pathlib import Path
import torch
from regard.training.engine.distributed.world import is_main_process, join_process_group, leave_process_group

cpu = torch.device("cpu")
world, device = join_process_group(cpu)
numbers = torch.tensor([1.0, 10.0 * world.rank])
world.all_reduce(numbers)
world.barrier()
layer = torch.nn.Linear(1, 1)
torch.nn.init.constant_(layer.weight, 3.0 + world.rank)
world.broadcast_weights(layer)
values = {
    "rank": world.rank,
    "ranks": world.ranks,
    "device": device.type,
    "sum": numbers.tolist(),
    "path": str(world.broadcast_path(Path(f"run{world.rank}"))),
    "any": [world.any_rank(world.rank == 1, device), world.any_rank(False, device)],
    "weight": layer.weight.item(),
}
leave_process_group(world)
values["initialized"] = torch.distributed.is_initialized()
values["main"] = [world.is_main_process, is_main_process()]
print(json.dumps(values))
"""


def test_one_process_needs_no_group() -> None:
    world, device = join_process_group(CPU)
    assert (world, device) == (World(0, 1), CPU)
    numbers = torch.tensor([1.0, 2.0])
    world.all_reduce(numbers)
    world.barrier()
    assert numbers.tolist() == [1.0, 2.0]
    assert world.broadcast_path(Path("run")) == Path("run")
    assert [world.any_rank(flag, CPU) for flag in (True, False)] == [True, False]
    assert world.wrap(from_preset("tiny-bert").network) is None
    assert world.is_main_process
    assert is_main_process()
    leave_process_group(world)
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_row_of_a_step_belongs_to_one_rank(ranks: int) -> None:
    rows = np.array([9, 4, 7, 1, 3])
    parts = [World(rank, ranks).rank_rows(rows).tolist() for rank in range(ranks)]
    assert sorted(row for part in parts for row in part) == [1, 3, 4, 7, 9]
    assert parts[0] == rows[::ranks].tolist()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_two_processes() -> None:
    results = run_ranks(RANK, ranks=2)
    assert [done.returncode for done in results] == [0, 0], [done.stderr[-2000:] for done in results]
    for rank, done in enumerate(results):
        assert json.loads(done.stdout) == {
            "rank": rank,
            "ranks": 2,
            "device": "cpu",
            "sum": [2.0, 10.0],
            "path": "run0",
            "any": [True, False],
            "weight": 3.0,
            "initialized": False,
            "main": [rank == 0, rank == 0],
        }
