"""The saved training state. It is replaced atomically: after a kill there is the old state or the new one."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.checkpoint.files import atomic_folder, read_json, write_json
from regard.checkpoint.manifest import RUN, files_of
from regard.digests import Digests, describe_damage, file_digests, has_valid_digest, with_digest
from regard.errors import FolderError, InputError, shorten
from regard.foreign import file_errors, open_regular_file, path_inside
from regard.training.engine.distributed.fsdp import load_shards, save_shards
from regard.training.engine.distributed.world import World
from regard.training.resume.position import TrainingPosition
from regard.training.settings import Settings

STATE = "state"
WEIGHTS, OPTIMIZER, BEST, AVERAGE, INITIAL, POSITION, SHARDS = (
    "weights.safetensors",
    "optimizer.safetensors",
    "best.safetensors",
    "average.safetensors",
    "initial.safetensors",
    "state.json",
    "shards",
)
CHOSEN = (  # settings that are chosen from the data, the model and the device, where the user leaves them open
    *("epochs", "steps", "lr", "batch_tokens", "schedule", "warmup", "adam_beta2", "layerwise_lr_decay", "dropout"),
    *("label_smoothing", "rdrop", "rdrop_start", "repeats"),
)
FORMAT = 2  # of state.json; the first had no digests


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Every tensor of the network once, by name."""
    weights = {name: parameter.detach() for name, parameter in network.named_parameters()}
    buffers = {name: buffer for name, buffer in network.named_buffers() if name in network.state_dict()}
    return weights | buffers


@torch.no_grad()
def put_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into the network, in place."""
    for name, parameter in weights_of(network).items():
        parameter.copy_(weights[name])


def has_state(folder: Path) -> bool:
    """Whether a training state was saved in the folder."""
    return (folder / STATE).exists()


def saved_step(folder: Path) -> int | None:
    """The step of the saved state; None if there is none. A damaged one is reported when it is loaded."""
    try:
        return int(json.loads((folder / STATE / POSITION).read_text(encoding="utf-8"))["position"]["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def has_initial_weights(folder: Path) -> bool:
    """Whether the saved training state includes the weights that a repeated training begins from."""
    return INITIAL in state_files(folder)


def save_state(
    folder: Path,
    position: TrainingPosition,
    *,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    best: Mapping[str, Tensor] | None,
    average: Mapping[str, Tensor],
    identity: Mapping[str, Any],
    initial: Mapping[str, Tensor] | None = None,
) -> None:
    """Replace the state in the run's folder. Best weights that have not changed are hard-linked, not written again.

    weights: may be the same object as `best`; then they are written once.
    initial: the weights that a repeated training begins from; they never change, and are linked too.
    """
    target = folder / STATE
    try:
        with _new_state(folder) as new_folder:
            _save(new_folder / OPTIMIZER, optimizer)
            if average:
                _save(new_folder / AVERAGE, average)
            digests: Digests = {}
            for name, unchanging, best_step in ((BEST, best, position.best_step), (INITIAL, initial, None)):
                if unchanging is not None:
                    digests |= _linked(target, new_folder, name, best_step)
                    if name not in digests:
                        _save(new_folder / name, unchanging)
            if best is weights:
                digests |= _linked_weights(new_folder, digests)
            if WEIGHTS not in digests:
                _save(new_folder / WEIGHTS, weights)
            _write(new_folder, position, identity, digests)
    except FolderError as error:
        raise _unsaved(error, target, position) from error


def save_sharded(
    folder: Path,
    position: TrainingPosition,
    *,
    tensors: Mapping[str, Tensor],
    identity: Mapping[str, Any],
    world: World,
) -> None:
    """Like `save_state`, for sharded weights: all ranks write into one folder, and the main process renames it."""
    target = folder / STATE
    try:
        with _new_state(folder) if world.is_main_process else contextlib.nullcontext(Path()) as new_folder:
            save_shards(world.broadcast_path(new_folder / SHARDS), tensors)
            if world.is_main_process:
                _write(new_folder, position, identity, {})
    except OSError as error:
        raise _unsaved(error, target, position) from error


def _new_state(folder: Path) -> contextlib.AbstractContextManager[Path]:
    """A folder for the new state, which replaces the old one; other files in `state/` are kept."""
    before = state_files(folder)
    return atomic_folder(folder / STATE, overwrite=True, drop=lambda _: before, manifest=False)


def _write(new_folder: Path, position: TrainingPosition, identity: Mapping[str, Any], known: Digests) -> None:
    """Write state.json with the digests of all files and of its own content. `known` digests are not computed again."""
    names = {path.relative_to(new_folder).as_posix() for path in new_folder.rglob("*") if path.is_file()}
    digests = {**known, **file_digests(new_folder, sorted(names - known.keys()))}
    content = {"format": FORMAT, "position": asdict(position), "identity": dict(identity), "files": digests}
    write_json(new_folder / POSITION, with_digest(content))


def _unsaved(error: OSError, target: Path, position: TrainingPosition) -> FolderError:
    before = "The state saved before is kept" if target.exists() else "No state was saved before"
    return FolderError(
        f"the state at step {position.step} was not saved: {error} {before}: fix that, then continue with --resume."
    )


def _linked(old: Path, new_folder: Path, name: str, best_step: int | None) -> Digests:
    """Hard-link weights of the old state that have not changed; returns their name and digest.

    best_step: the best weights are the same if they are of this step.
    """
    try:
        stored = json.loads((old / POSITION).read_text(encoding="utf-8"))
        if not has_valid_digest(stored) or best_step not in (None, stored["position"]["best_step"]):
            return {}
        digest: dict[str, Any] = stored["files"][name]
        os.link(old / name, new_folder / name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {name: digest}


def _linked_weights(new_folder: Path, known: Digests) -> Digests:
    """Hard-link the best weights as the weights; returns the digest of both. Empty where files cannot be linked."""
    try:
        os.link(new_folder / BEST, new_folder / WEIGHTS)
    except OSError:
        return {}
    digest = known.get(BEST) or file_digests(new_folder, [BEST])[BEST]
    return {BEST: digest, WEIGHTS: digest}


def _save(path: Path, tensors: Mapping[str, Tensor]) -> None:
    try:
        save_file({name: tensor.detach().contiguous().to("cpu", copy=True) for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # its text has the message of the system
        raise OSError(str(error)) from error


@dataclass(frozen=True)
class SavedState:
    """A state that was loaded. `checked`: it has digests, and its files match them."""

    position: TrainingPosition
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    best: dict[str, Tensor] | None
    average: dict[str, Tensor] = field(default_factory=dict)  # the mean of the weights; empty if it has not begun
    initial: dict[str, Tensor] | None = None  # what a repeated training begins from
    checked: bool = True


def load_state(
    folder: Path,
    identity: Mapping[str, Any],
    parameters: Mapping[str, Tensor] | None = None,
    world: World | None = None,
) -> SavedState | None:
    """The saved state of a run; None if there is none. An error if it is damaged, or if data or settings differ.

    A state written before digests were added has only a position and an identity. It is loaded without comparing
    digests, and `checked` is false.
    """
    target = folder / STATE
    if not (target / POSITION).exists():
        return None
    stored = read_json(target, POSITION)
    names = _check(target, stored, world or World(), parameters)
    check_same(folder, _object(target, stored, "identity"), identity)
    position = _position(target, stored)
    if (position.best is None) == (BEST in names) and not _sharded(names):
        raise _damaged(target, f"{BEST} {'is not part of this state' if BEST in names else 'is missing'}")
    with file_errors(target):
        saved = _read(target, position, names, parameters)
    saved = replace(saved, checked="files" in stored)
    if parameters is not None and not _fits(saved, parameters):
        raise FolderError(f"the state in {target} belongs to another network. Start over with --overwrite.")
    return saved


def _check(target: Path, stored: Mapping[str, Any], world: World, parameters: Mapping[str, Tensor] | None) -> set[str]:
    """The names of the state's files, after comparing each with its digest. Each rank checks a part of them."""
    if stored.keys() == {"position", "identity"}:  # written before digests were added
        return {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()} - {POSITION}
    if stored.get("format") != FORMAT and has_valid_digest(stored):
        raise FolderError(
            f"the state in {target} has format {str(stored.get('format'))[:20]}, expected {FORMAT}: it was written "
            "by another version of regard. Continue with that version, or start over with --overwrite."
        )
    if not has_valid_digest(stored):
        raise _damaged(target, f"{target / POSITION} is damaged: its content does not match its digest")
    digests = _object(target, stored, "files")
    for name in digests:
        path_inside(target, name)
    checked_here = sorted(digests.items())[world.rank :: world.ranks]
    problem = describe_damage(target, dict(checked_here))
    device = next((tensor.device for tensor in (parameters or {}).values()), torch.device("cpu"))
    if world.any_rank(problem is not None, device):
        raise _damaged(target, problem or "another rank found a file that is missing or damaged")
    return set(digests)


def _position(target: Path, stored: Mapping[str, Any]) -> TrainingPosition:
    try:
        return TrainingPosition.of(stored.get("position"))
    except ValueError as error:
        raise _damaged(target, f"{target / POSITION}: {error}") from error


def _object(target: Path, stored: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = stored.get(name)
    if not isinstance(value, dict):
        raise _damaged(target, f'{target / POSITION} has no object "{name}"')
    return value


def _damaged(target: Path, problem: str) -> FolderError:
    return FolderError(
        f"the saved state cannot be used: {problem}. Copy the whole folder {target} back from a backup if there is "
        "one, or start over with --overwrite."
    )


def _sharded(names: set[str]) -> bool:
    return any(name.startswith(f"{SHARDS}/") for name in names)


def _read(
    target: Path, position: TrainingPosition, names: set[str], parameters: Mapping[str, Tensor] | None
) -> SavedState:
    if parameters is not None and _sharded(names):
        files = {path.relative_to(target).as_posix() for path in (target / SHARDS).rglob("*") if path.is_file()}
        if files - names:
            raise _damaged(target, f"{target / min(files - names)} is not part of this state")
        shards = load_shards(target / SHARDS, parameters)
        return SavedState(position, shards["weights"], shards["optimizer"], shards["best"] or None, shards["average"])
    for name in (WEIGHTS, OPTIMIZER):
        if name not in names:
            raise _damaged(target, f"{target / name} is missing")
    best = _load(target / BEST) if BEST in names else None
    average = _load(target / AVERAGE) if AVERAGE in names else {}
    initial = _load(target / INITIAL) if INITIAL in names else None
    return SavedState(position, _load(target / WEIGHTS), _load(target / OPTIMIZER), best, average, initial)


def _load(path: Path) -> dict[str, Tensor]:
    with file_errors(path), open_regular_file(path):
        return load_file(path)


def _fits(saved: SavedState, parameters: Mapping[str, Tensor]) -> bool:
    """Whether weights and optimizer are those of a network with these parameters."""
    shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in parameters.items()}
    whole = [weights for weights in (saved.weights, saved.best, saved.initial) if weights]
    known = [{name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()} for weights in whole]
    averaged = all(shapes.get(name) == (tensor.shape, tensor.dtype) for name, tensor in saved.average.items())
    names = {key.rpartition("|")[0] for key in saved.optimizer}
    return averaged and all(one == shapes for one in known) and names <= set(shapes)


def check_same(folder: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise InputError with the differences if this is not the same training."""
    if changed := differences(then, now):
        raise InputError(
            f"{folder} was started with other settings or data, so it cannot be resumed ({changed}). Give the "
            "same ones, or start over with --overwrite."
        )


def check_saved_identity(folder: Path, identity: Mapping[str, Any]) -> None:
    """Raise InputError if the saved state is of another training. A state that cannot be read is reported later."""
    try:
        stored = json.loads((folder / STATE / POSITION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if isinstance(stored, dict) and has_valid_digest(stored) and isinstance(stored.get("identity"), dict):
        check_same(folder, stored["identity"], identity)


def saved_settings(settings: Settings, folder: Path) -> dict[str, Any]:
    """The settings that the run in the folder began with, of those that are not given; empty if there is no run.

    Another device, or another version of regard, may choose others. What cannot be read is reported later.
    """
    for path, part in ((folder / STATE / POSITION, "identity"), (folder / RUN, "settings")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, InputError):
            stored = json.loads(path.read_text(encoding="utf-8"))[part]
            open_names = [name for name in CHOSEN if getattr(settings, name) is None]
            if settings.epochs is not None or settings.steps is not None:
                open_names = [name for name in open_names if name not in ("epochs", "steps")]
            chosen = {name: stored[name] for name in open_names if stored.get(name) is not None}
            Settings.of(chosen)  # raises an error for values that no version writes
            return chosen
    return {}


def _written(value: object) -> str:
    return "not given" if value is None else shorten(repr(value), 100)


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """How the identity of a training differs from what is asked for now, in words; empty if it does not.

    A setting that the version which began the run did not have counts as its default, which disables it.
    """
    then = {**asdict(Settings()), **then}
    changed = [name for name, value in now.items() if then.get(name) != value]
    parts = []
    if set(changed) & {"seed", "dev_fraction"}:  # which change the division of the rows
        changed = [name for name in changed if name not in ("data", "tokenizer")]
    elif "data" in changed:  # which other settings are chosen from
        parts, changed = ["the data differs"], [name for name in changed if name in ("start", "task")]
    both = {name: (_written(then.get(name)), _written(now[name])) for name in changed}
    return shorten("; ".join([*parts, *(f"{name}: {old} then, {new} now" for name, (old, new) in both.items())]), 600)


def state_files(folder: Path) -> set[str]:
    """The files of the state in a run's folder, by their path in `state/`; none if `state/` is something else."""
    target = folder / STATE
    parts = [name for name in (WEIGHTS, OPTIMIZER, SHARDS) if (target / name).exists()]
    if not (target / POSITION).is_file() or not (parts or _is_state(target)):
        return set()
    return {
        name
        for name in files_of(target)
        if name in (POSITION, WEIGHTS, OPTIMIZER, BEST, AVERAGE, INITIAL) or name.startswith(f"{SHARDS}/")
    }


def _is_state(target: Path) -> bool:
    try:
        return "position" in read_json(target, POSITION)
    except FolderError:
        return False


def remove_state(folder: Path) -> None:
    """Remove the state. If `state/` also has other files, only the files of the state are removed."""
    target = folder / STATE
    ours = state_files(folder)
    if ours and ours == files_of(target):
        aside = (
            folder / f".{STATE}.{secrets.token_hex(6)}.part"
        )  # renamed first, so that a kill does not leave a part of it
        target.replace(aside)
        shutil.rmtree(aside, ignore_errors=True)
        return
    for name in sorted(ours, key=lambda name: name != POSITION):
        (target / name).unlink(missing_ok=True)


def remove_partial_state(folder: Path, *, state: bool = False) -> None:
    """Remove temporary files of killed saves; with `state`, also the state itself."""
    target, name = folder.resolve() / STATE, folder.resolve().name[:100]
    aside = list(target.parent.glob(f".{STATE}.????????????.old"))
    if aside and not target.exists():  # killed between two renames, on a system that cannot swap folders
        aside.pop().replace(target)
    whole = [*target.parent.parent.glob(f".{glob.escape(name)}.????????????.part")]
    for left in [*target.parent.glob(f".{STATE}.????????????.part"), *aside, *whole]:
        shutil.rmtree(left, ignore_errors=True)
    if state:
        remove_state(folder.resolve())
