"""Saved training states, damaged: a resume reads exactly what was saved, or refuses."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from tests.fuzz.mutate import damaged, damaged_json, special_file

from regard.checkpoint.manifest import METRICS
from regard.digests import DIGEST, with_digest
from regard.training.engine.distributed.world import World
from regard.training.output.curves import draw_curves
from regard.training.output.metrics_log import Recorder, read_metrics
from regard.training.resume.lock import claim
from regard.training.resume.position import TrainingPosition
from regard.training.resume.state import (
    SavedState,
    load_state,
    remove_partial_state,
    save_sharded,
    save_state,
    state_files,
)

IDENTITY = {"data": "abc", "task": "classify", "lr": 0.001, "lora": {"rank": 0}, "freeze": []}
STEP = 7
WEIGHTS = {"layer.weight": torch.arange(12.0).reshape(3, 4), "layer.bias": torch.ones(3)}
METRIC_LINES = [
    {"kind": "log", "step": 5, "epoch": 0.5, "loss": 0.7, "norm": 1.0, "tokens_per_second": 100.0},
    {"kind": "score", "step": 7, "main": "f1", "best": True, "dev_loss": 0.5, "scores": {"f1": 0.5, "macro_f1": 0.25}},
]
_states: dict[str, dict[str, bytes]] = {}
_saved: dict[str, SavedState] = {}


def prepare() -> None:
    """A state of one process and one in shards, as bytes: a case opens nothing outside its own folder."""
    position = TrainingPosition(STEP, 1, 2, 0.5, 0.6, 5, 1, 0, 900, 12.5, 512, [0.5] * 6, [1.5, 3.0])
    optimizer = {f"{name}|exp_avg": tensor * 2 for name, tensor in WEIGHTS.items()}
    best = {name: tensor + 1 for name, tensor in WEIGHTS.items()}
    average = {name: tensor + 2 for name, tensor in WEIGHTS.items()}
    for kind in ("whole", "sharded"):
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        parts = {"weights": WEIGHTS, "optimizer": optimizer, "best": best, "average": average}
        if kind == "whole":
            save_state(folder, position, **parts, identity=IDENTITY)
        else:
            tensors = {f"{part}|{name}": tensor for part, rows in parts.items() for name, tensor in rows.items()}
            save_sharded(folder, position, tensors=tensors, identity=IDENTITY, world=World())
        files = [path for path in folder.rglob("*") if path.is_file()]
        _states[kind] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        result = load_state(folder, IDENTITY, WEIGHTS)
        assert result is not None
        _saved[kind] = result
        draw_curves(METRIC_LINES, folder / "curves.png")  # loads fonts once
        shutil.rmtree(folder)


def fuzz(draw: random.Random, folder: Path) -> None:
    kind = draw.choice(("whole", "whole", "whole", "sharded"))
    run = folder / "run"
    for name, content in {**_states[kind], METRICS: _metrics()}.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(content)
    (folder / "secret").write_text("secret")
    names = sorted(_states[kind])
    forged = False
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        forged |= _change(draw, run, draw.choice([*names, METRICS]), folder / "secret")
    claim(run, resume=True, overwrite=False)
    remove_partial_state(run)
    state_files(run)
    result = load_state(run, IDENTITY, WEIGHTS)
    if result is not None and not forged:
        _check_same(result, _saved[kind])
    Recorder(run, step=STEP)
    if draw.random() < 0.02:
        draw_curves(read_metrics(run), folder / "curves.png")


def _metrics() -> bytes:
    return "".join(json.dumps(line) + "\n" for line in METRIC_LINES).encode()


def _change(draw: random.Random, run: Path, name: str, outside: Path) -> bool:
    """Damage one file; whether state.json was made anew with a digest that fits, or without any."""
    path, position = run / name, run / "state/state.json"
    kind = draw.choice(("bytes", "bytes", "json", "sealed", "older", "missing", "special", "swapped", "extra"))
    if kind in ("json", "sealed", "older") and position.is_file() and position.stat().st_size < 1 << 20:
        return _change_json(draw, position, kind)
    if kind == "missing":
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
    elif kind == "special":
        special_file(draw, path, outside)
    elif kind == "extra":
        extra = path.parent / draw.choice(("other.safetensors", "best.safetensors", ".x.part"))
        if not os.path.lexists(extra):
            extra.write_bytes(b"something")
    elif path.is_file() and not path.is_symlink():
        content = path.read_bytes() if path.stat().st_size < 1 << 20 else b""
        path.write_bytes(damaged(draw, content) if kind == "bytes" else position.name.encode())
    return False


def _change_json(draw: random.Random, path: Path, kind: str) -> bool:
    """state.json with other values: as it is, with a digest that fits, or as a version before digests wrote it."""
    try:
        content: Any = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError):
        return False
    if not isinstance(content, dict):
        return False
    if kind == "json":
        path.write_bytes(damaged_json(draw, content))
        return False
    content.pop(DIGEST, None)
    if kind == "older":
        content = {name: content.get(name) for name in ("position", "identity")}
    if draw.random() < 0.8:
        try:
            content = json.loads(damaged_json(draw, content))
        except (ValueError, RecursionError):
            return False
    if isinstance(content, dict):
        path.write_text(json.dumps(with_digest(content) if kind == "sealed" else content), encoding="utf-8")
    return True


def _check_same(result: SavedState, saved: SavedState) -> None:
    """A state that is used is the one that was saved, to the last bit."""
    assert result.checked, "an unchecked state was used"
    assert result.position == saved.position, "another position was used"
    pairs = [
        (result.weights, saved.weights),
        (result.optimizer, saved.optimizer),
        (result.best or {}, saved.best or {}),
        (result.average, saved.average),
    ]
    for one, other in pairs:
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one), "other tensors were used"
