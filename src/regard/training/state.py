"""Everything needed to go on with a training, saved whole: a kill at any moment leaves the old state or the new one."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.checkpoint.files import read_json, whole_folder, write_json
from regard.errors import FolderError, InputError
from regard.training.parallel import World
from regard.training.shards import load_shards, save_shards

STATE = "state"
WEIGHTS, OPTIMIZER, BEST, POSITION, SHARDS = (
    "weights.safetensors",
    "optimizer.safetensors",
    "best.safetensors",
    "state.json",
    "shards",
)


@dataclass
class Position:
    """Where a training stands. What is random in a step depends on the seed and its number alone."""

    step: int = 0
    epoch: int = 0
    in_epoch: int = 0  # steps of this epoch that are done
    best: float | None = None
    best_loss: float | None = None  # on dev, of the best weights
    best_step: int = 0
    worse: int = 0  # scores since the best
    skipped: int = 0  # steps, as far as it was said
    tokens: int = 0
    seconds: float = 0.0
    micro_tokens: int = 0
    guard: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # sum and count of those not told yet


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Every tensor of the network once, by name."""
    held = {name: parameter.detach() for name, parameter in network.named_parameters()}
    buffers = {name: buffer for name, buffer in network.named_buffers() if name in network.state_dict()}
    return held | buffers


@torch.no_grad()
def put_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into the network, in place."""
    for name, mine in weights_of(network).items():
        mine.copy_(weights[name])


def save_state(
    folder: Path,
    position: Position,
    *,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    best: Mapping[str, Tensor] | None,
    identity: Mapping[str, Any],
) -> None:
    """Replace the state in the run's folder. Best weights that have not changed since are linked, not written again."""
    target = folder / STATE
    try:
        with whole_folder(target, overwrite=True) as fresh:
            _save(fresh / WEIGHTS, weights)
            _save(fresh / OPTIMIZER, optimizer)
            if best is not None and not _linked(target, fresh, position.best_step):
                _save(fresh / BEST, best)
            write_json(fresh / POSITION, {"position": asdict(position), "identity": dict(identity)})
    except FolderError as error:
        raise _unsaved(error, target, position) from error


def save_sharded(
    folder: Path, position: Position, *, tensors: Mapping[str, Tensor], identity: Mapping[str, Any], world: World
) -> None:
    """The same where every rank holds a part: all write into one folder, and the first puts it in its place."""
    target = folder / STATE
    try:
        with whole_folder(target, overwrite=True) if world.first else contextlib.nullcontext(Path()) as fresh:
            save_shards(world.told(fresh / SHARDS), tensors)
            if world.first:
                write_json(fresh / POSITION, {"position": asdict(position), "identity": dict(identity)})
    except OSError as error:
        raise _unsaved(error, target, position) from error


def _unsaved(error: OSError, target: Path, position: Position) -> FolderError:
    before = "The state saved before is kept" if target.exists() else "No state was saved before"
    return FolderError(
        f"the state at step {position.step} was not saved: {error} {before}: mend that, then go on with --resume."
    )


def _linked(old: Path, fresh: Path, best_step: int) -> bool:
    try:
        stored = json.loads((old / POSITION).read_text(encoding="utf-8"))
        if stored["position"]["best_step"] != best_step:
            return False
        os.link(old / BEST, fresh / BEST)
    except (OSError, ValueError, KeyError):
        return False
    return True


def _save(path: Path, tensors: Mapping[str, Tensor]) -> None:
    try:
        save_file({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # what the system says is in its text
        raise OSError(str(error)) from error


@dataclass(frozen=True)
class Saved:
    """A state that was read."""

    position: Position
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best: dict[str, Tensor] | None


def load_state(
    folder: Path, identity: Mapping[str, Any], parameters: Mapping[str, Tensor] | None = None
) -> Saved | None:
    """The state of a run; None where it has none. Refused where what was asked for has changed since."""
    target = folder / STATE
    if not (target / POSITION).exists():
        return None
    stored = read_json(target, POSITION)
    try:
        check_same(folder, stored["identity"], identity)
        position = Position(**stored["position"])
        if parameters is not None and (target / SHARDS).is_dir():
            held = load_shards(target / SHARDS, parameters)
            return Saved(position, held["weights"], held["optimizer"], held["best"] or None)
        best = load_file(target / BEST) if (target / BEST).exists() else None
        saved = Saved(position, load_file(target / WEIGHTS), load_file(target / OPTIMIZER), best)
    except (SafetensorError, OSError, KeyError, TypeError, AttributeError) as error:
        raise FolderError(f"the state in {target} is damaged: {error}. Begin again with --overwrite.") from error
    if parameters is not None and not _fits(saved, parameters):
        raise FolderError(f"the state in {target} is that of another network. Begin again with --overwrite.")
    return saved


def _fits(saved: Saved, parameters: Mapping[str, Tensor]) -> bool:
    """Whether weights and optimizer are those of a network with these parameters."""
    shapes = {name: tensor.shape for name, tensor in parameters.items()}
    known = [{name: tensor.shape for name, tensor in held.items()} for held in (saved.weights, saved.best) if held]
    return all(held == shapes for held in known) and {key.rpartition("|")[0] for key in saved.optimizer} <= set(shapes)


def check_same(folder: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with what is not the same training; say what changed."""
    changed = [name for name, value in now.items() if then.get(name) != value]
    if changed:
        lines = "; ".join(f"{name}: {then.get(name)!r} then, {now[name]!r} now" for name in changed)
        raise InputError(
            f"{folder} was begun with other settings or data, so it cannot be resumed ({lines:.600}). Give what was "
            "given then, or begin again with --overwrite."
        )


def clean(folder: Path, *, state: bool = False) -> None:
    """Remove what killed saves left; the state itself too, where a training begins anew."""
    target, name = folder.resolve() / STATE, folder.resolve().name[:100]
    aside = list(target.parent.glob(f".{STATE}.*.old"))
    if aside and not target.exists():  # killed between two names, where the system cannot exchange them
        aside.pop().replace(target)
    whole = [*target.parent.parent.glob(f".{glob.escape(name)}.????????????.part")]
    for left in [*target.parent.glob(f".{STATE}.*.part"), *aside, *whole, *([target] if state else [])]:
        shutil.rmtree(left, ignore_errors=True)
