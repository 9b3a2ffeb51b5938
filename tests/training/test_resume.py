"""A training that was stopped, killed or could not save goes on as if nothing had been."""

from __future__ import annotations

import errno
import itertools
import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError
from tests.training.helpers import LONG, Digest, Train, edit_state, metrics, stop_at

from regard.checkpoint import files
from regard.checkpoint.manifest import MANIFEST
from regard.data.batching.examples import Examples
from regard.digests import with_digest
from regard.errors import FolderError, InputError
from regard.text.learn import train_tokenizer_from_texts
from regard.training import pipeline
from regard.training.engine.loop import Stopped
from regard.training.output.metrics_log import TrainingEvent
from regard.training.resume import state
from regard.training.train import train


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ("before any state", signal.SIGTERM),
        ("in an epoch", signal.SIGINT),
        ("the end of an epoch", signal.SIGTERM),
        ("the last step", signal.SIGTERM),
    ],
)
def test_a_stopped_training_goes_on(
    whole: Path, small: Train, digest: Digest, tmp_path: Path, where: str, number: int
) -> None:
    ends = [line["step"] for line in metrics(whole) if line["kind"] == "score"]
    step = {"before any state": 3, "in an epoch": 9, "the end of an epoch": ends[1], "the last step": ends[-1]}[where]
    log_every = ends[1] if where == "the end of an epoch" else LONG["log_every"]
    settings = {**LONG, "log_every": log_every}
    with pytest.raises(Stopped, match=rf"stopped at step {step} of \d+.*--resume"):
        small(tmp_path, **settings, overwrite=True, progress=stop_at(step, number))
    small(tmp_path, **settings, resume=True)
    assert digest(tmp_path) == digest(whole)
    if log_every == LONG["log_every"]:
        assert metrics(tmp_path) == metrics(whole)
    assert not (tmp_path / "state").exists()


def test_nothing_that_was_passed_is_read_again(small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = Examples.take
    with pytest.raises(Stopped):
        small(tmp_path, **{**LONG, "dev_fraction": 0.0, "log_every": 5}, overwrite=True, progress=stop_at(5))
    monkeypatch.setattr(Examples, "take", lambda self, rows: (taken.append(len(rows)), take(self, rows))[1])
    done = small(tmp_path, **{**LONG, "dev_fraction": 0.0, "log_every": 5}, resume=True)
    assert len(taken) == done.steps - 5


@pytest.mark.parametrize("can_link", [True, False])
def test_after_the_last_step_only_the_best_weights_are_saved_and_once(
    whole: Path, small: Train, digest: Digest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_link: bool
) -> None:
    steps = json.loads((whole / "run.json").read_text())["done"]["steps"]

    def fail(*_: Any) -> None:
        raise OSError(errno.EPERM, "hard links are not supported")

    if not can_link:
        monkeypatch.setattr(os, "link", fail)
    with pytest.raises(Stopped, match=f"stopped at step {steps} of {steps}"):
        small(tmp_path, **LONG, overwrite=True, progress=stop_at(steps))
    saved = tmp_path / "state"
    assert (saved / "weights.safetensors").samefile(saved / "best.safetensors") == can_link
    assert (saved / "weights.safetensors").read_bytes() == (saved / "best.safetensors").read_bytes()
    small(tmp_path, **LONG, resume=True)
    assert digest(tmp_path) == digest(whole)


def test_the_time_of_a_resumed_run_includes_the_steps_before_it_was_stopped(small: Train, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        small(tmp_path, **LONG, overwrite=True, progress=stop_at(3))
    state = tmp_path / "state/state.json"
    content = json.loads(state.read_text())
    assert 0 < content["position"]["seconds"] < 1000
    content["position"]["seconds"] = 1000.0
    content.pop("digest")
    state.write_text(json.dumps(with_digest(content)))
    result = small(tmp_path, **LONG, resume=True)
    run = json.loads((tmp_path / "run.json").read_text())
    assert result.seconds >= run["seconds"] >= run["done"]["seconds"] > 1000


@pytest.mark.parametrize("name", ["final_scores", "tune_task", "write_run"])
def test_a_stop_after_the_last_step_costs_no_step(
    small: Train, digest: Digest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """One epoch without scores during training, so that there is no earlier state: Ctrl-C while the result is made."""
    once: dict[str, Any] = {"epochs": 1, "dev_fraction": 0.2, "eval_every": 10**6, "log_every": 1}
    small(tmp_path / "whole", **once)

    def stop(*_: Any, **__: Any) -> None:
        if steps:
            raise KeyboardInterrupt

    steps: list[int] = []
    function = getattr(pipeline, name)
    monkeypatch.setattr(pipeline, name, lambda *arguments, **options: (stop(), function(*arguments, **options))[1])

    def on_event(event: TrainingEvent) -> None:
        if event.kind == "score":
            steps.append(event.step)

    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "run", **once, progress=on_event)
    monkeypatch.undo()
    again: list[TrainingEvent] = []
    small(tmp_path / "run", **once, resume=True, progress=again.append)
    assert not [event for event in again if event.kind == "log"]
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_a_state_is_saved_once_an_epoch_where_nothing_is_scored(
    small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.training.engine.loop.MIN_SAVE_SECONDS", 0)
    saved: list[dict[str, Any]] = []

    def on_event(event: TrainingEvent) -> None:
        if event.epoch > 2 and not saved:
            saved.append(json.loads((tmp_path / "run/state/state.json").read_text())["position"])

    small(tmp_path / "run", epochs=3, dev_fraction=0.0, log_every=1, progress=on_event)
    assert saved[0]["epoch"] == 1
    assert saved[0]["in_epoch"] > 0


def test_no_state_is_written_again_within_seconds(small: Train, tmp_path: Path) -> None:
    """Evaluations of a short run write no state; its end does, and so does `save_every`."""
    saved: list[bool] = []

    def on_event(event: TrainingEvent) -> None:
        if event.kind != "note":  # what is said about the scores comes after the end of the steps
            saved.append((tmp_path / "run/state").exists())

    small(tmp_path / "run", epochs=3, dev_fraction=0.2, log_every=1, progress=on_event)
    assert not any(saved)
    small(tmp_path / "run", epochs=3, dev_fraction=0.2, log_every=1, save_every=1, progress=on_event, overwrite=True)
    assert saved[-1]


def test_an_early_stop_across_a_resume(small: Train, digest: Digest, tmp_path: Path) -> None:
    """A rate so high that dev never gets better: the first score stays the best, wherever the run is cut."""
    early = {"epochs": 8, "lr": 0.3, "patience": 2, "dev_fraction": 0.2, "log_every": 1, "save_every": 1}
    ended = small(tmp_path / "whole", **early)
    assert ended.stopped_early
    scored = [line["step"] for line in metrics(tmp_path / "whole") if line["kind"] == "score"]
    best = json.loads((tmp_path / "whole/run.json").read_text())["done"]["best_step"]
    with pytest.raises(Stopped):
        small(tmp_path / "cut", **early, progress=stop_at(scored[-1] - 1))
    small(tmp_path / "cut", **early, resume=True)
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole")
    assert json.loads((tmp_path / "cut/run.json").read_text())["done"]["best_step"] == best
    assert metrics(tmp_path / "cut") == metrics(tmp_path / "whole")
    with pytest.raises(Stopped, match=f"step {ended.steps} "):  # the very step it stops early at
        small(tmp_path / "last", **early, progress=stop_at(scored[-1]))
    again = small(tmp_path / "last", **early, resume=True)
    assert again.stopped_early
    assert again.steps == ended.steps
    assert digest(tmp_path / "last") == digest(tmp_path / "whole")


def saving(folder: Path) -> set[str]:
    """States that are being saved, or were when a kill came."""
    return {path.name for path in folder.glob(".state.*.part")}


def wait_for_saves(folder: Path, process: Any, before: set[str], count: int) -> None:
    """Until so many saves have begun, or the training has ended."""
    recorded: set[str] = set()
    while len(recorded) < count and process.is_alive():
        recorded |= saving(folder) - before
        time.sleep(0.0005)


@pytest.mark.timeout(900)  # ten starts, on a machine that may be busy
def test_ten_kills(small: Train, rows: Path, small_settings: dict[str, Any], digest: Digest, tmp_path: Path) -> None:
    """SIGKILL at any moment; every second one waits for a save to begin."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["regard.training.train", "matplotlib.figure", "matplotlib.backends.backend_agg"])
    short = {"epochs": 3, "dev_fraction": 0.2, "log_every": 3, "save_every": 1}
    settings, whole = {**small_settings, **short, "data": str(rows), "resume": True}, tmp_path / "whole"
    small(whole, **short)

    def started(out: Path) -> Any:
        out.mkdir(exist_ok=True)
        process = processes.Process(target=train, kwargs={**settings, "out": out})
        process.start()
        return process

    idle = processes.Process(target=int)
    idle.start()
    idle.join()  # the imports are made
    began = time.monotonic()
    started(tmp_path / "timed").join()
    spent = min(time.monotonic() - began, 5.0)
    assert digest(tmp_path / "timed") == digest(whole)
    generator, folders = random.Random(7), (tmp_path / f"run{number}" for number in itertools.count())
    out, amid = next(folders), 0
    moments: list[float] = []
    while len(moments) < 10:
        before, process = saving(out), started(out)
        if len(moments) % 2:
            wait_for_saves(out, process, before, generator.randint(1, 4))
        else:
            process.join(generator.uniform(0.2, 1.2) * spent)
        process.kill()
        process.join()
        if process.exitcode == 0:
            assert digest(out) == digest(whole)
            out = next(folders)
            continue
        amid += bool(saving(out) - before)
        position = out / "state/state.json"
        moments.append(json.loads(position.read_text())["position"]["step"] if position.exists() else 0)
    train(**{**settings, "out": out})
    assert digest(out) == digest(whole)
    assert metrics(out) == metrics(whole)
    assert [path.name for path in (*out.glob(".*"), *tmp_path.glob(f".{out.name}.*"))] == [MANIFEST]
    assert amid >= 2, f"only {amid} kills fell into a save"
    assert len(set(moments)) >= 2, f"the kills fell at the same few steps: {moments}"


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken(*_: Any, **__: Any) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def half_written(tensors: Any, path: Path) -> None:
    Path(path).write_bytes(b"\x40\0\0\0")
    raise SafetensorError("I/O error: No space left on device (os error 28)")


FAULTS = [
    (os, "fsync", full, "No space left on device"),
    (state, "save_file", half_written, "No space left on device"),
    (files, "_exchange", broken, "Input/output error"),
]


@pytest.mark.parametrize(("where", "name", "fault", "words"), FAULTS)
def test_a_disk_that_fails_loses_nothing(
    whole: Path, small: Train, digest: Digest, tmp_path: Path, where: Any, name: str, fault: Any, words: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def on_event(event: TrainingEvent) -> None:
            if event.kind == "log" and event.step == 6:
                patch.setattr(where, name, fault)

        with pytest.raises(FolderError, match=rf"state at step 6 was not saved: .*{words}.*--resume"):
            small(tmp_path / "run", **LONG, save_every=1, progress=on_event)
    stored = json.loads((tmp_path / "run/state/state.json").read_text())
    assert stored["position"]["step"] == 5
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["metrics.jsonl", "state"]
    small(tmp_path / "run", **LONG, resume=True)
    assert digest(tmp_path / "run") == digest(whole)
    assert metrics(tmp_path / "run") == metrics(whole)


def test_a_disk_that_fails_at_the_end_loses_nothing(
    whole: Path, small: Train, digest: Digest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def on_event(event: TrainingEvent) -> None:
            if event.step == event.steps:
                patch.setattr(os, "fsync", full)

        with pytest.raises(FolderError, match=r"No space left on device.*--resume"):
            small(tmp_path / "run", **LONG, progress=on_event)
    small(tmp_path / "run", **LONG, resume=True)
    assert digest(tmp_path / "run") == digest(whole)
    assert metrics(tmp_path / "run") == metrics(whole)


def test_another_training_is_not_resumed(
    small: Train, rows: Path, small_settings: dict[str, Any], tmp_path: Path
) -> None:
    events: list[TrainingEvent] = []
    with pytest.raises(Stopped):
        small(tmp_path / "run", **LONG, progress=stop_at(3))
    with pytest.raises(InputError, match=r"cannot be resumed \(lr: 0.001 then, 0.002 now\).*--overwrite"):
        small(tmp_path / "run", **{**LONG, "lr": 2e-3}, resume=True, progress=events.append)
    assert "begin" not in {event.kind for event in events}  # which says where it goes on
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("\n".join(rows.read_text().splitlines()[:-2]))
    with pytest.raises(InputError, match=r"cannot be resumed \(the data differs\)"):
        train(fewer, out=tmp_path / "run", **small_settings, **LONG, resume=True)
    with pytest.raises(InputError, match="resume and overwrite"):
        small(tmp_path / "run", **LONG, resume=True, overwrite=True)


def test_what_another_device_or_version_would_choose_is_not_used(small: Train, tmp_path: Path) -> None:
    """A resumed run has the settings that it began with; what is given still has to be the same."""
    settings: dict[str, Any] = {"lr": None, "epochs": 2, "log_every": 1}
    with pytest.raises(Stopped):
        small(tmp_path / "run", **settings, progress=stop_at(2))
    edit_state(tmp_path / "run", lambda content: content["identity"].update(lr=1.25e-4), new_digest=True)
    with pytest.raises(InputError, match=r"cannot be resumed \(lr: 0\.000125 then, 0\.002 now\)"):
        small(tmp_path / "run", **{**settings, "lr": 2e-3}, resume=True)
    small(tmp_path / "run", **settings, resume=True)
    assert json.loads((tmp_path / "run/run.json").read_text())["settings"]["lr"] == 1.25e-4


def test_another_task_or_vocabulary_is_another_training(
    small: Train, small_settings: dict[str, Any], tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2,label\n" + "".join(f"one {n},two {n % 3},{n / 9}\n" for n in range(30)))
    with pytest.raises(Stopped):
        train(pairs, out=tmp_path / "pair", **small_settings, task="pair", epochs=3, log_every=1, progress=stop_at(1))
    with pytest.raises(InputError, match=r"cannot be resumed \(task: 'pair' then, 'embed' now"):
        train(pairs, out=tmp_path / "pair", **small_settings, task="embed", epochs=3, resume=True)
    for name, text in {"one": "good words", "other": "words of good"}.items():
        (tmp_path / name).mkdir()
        train_tokenizer_from_texts([text * 9], kind="wordpiece", size=24).save(tmp_path / name)
    with pytest.raises(Stopped):
        small(tmp_path / "run", **LONG, tokenizer=tmp_path / "one", progress=stop_at(3))
    with pytest.raises(InputError, match=r"cannot be resumed \(tokenizer: "):
        small(tmp_path / "run", **LONG, tokenizer=tmp_path / "other", resume=True)


def test_what_ended_or_never_began(whole: Path, small: Train, digest: Digest, tmp_path: Path) -> None:
    """A job that always says --resume comes to the same end wherever it was killed."""
    with pytest.raises(FolderError, match="holds no training that could be resumed"):
        small(tmp_path / "run", **LONG, resume=True)
    (tmp_path / "run").mkdir()  # a kill before the first state
    first = small(tmp_path / "run", **LONG, resume=True)
    assert digest(tmp_path / "run") == digest(whole)
    again = small(tmp_path / "run", **LONG, resume=True)
    assert (again.scores, again.steps, again.tokens) == (first.scores, first.steps, first.tokens)
    assert again.seconds == json.loads((tmp_path / "run/run.json").read_text())["seconds"] <= first.seconds
    other = r"its training ended, and nothing is left to resume; it had other settings or data \(seed: 0 then, 1 now\)"
    with pytest.raises(FolderError, match=other):
        small(tmp_path / "run", **LONG, seed=1, resume=True)
    (tmp_path / "run/run.json").unlink()
    with pytest.raises(FolderError, match="not trained here"):
        small(tmp_path / "run", **LONG, resume=True)


def test_a_run_that_is_overwritten_is_not_resumed(
    whole: Path, small: Train, digest: Digest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the new one is stopped before its first step, while its initial weights are computed."""

    def stopped(*_: Any, **__: Any) -> None:
        raise Stopped("stopped", signal=signal.SIGINT)

    with pytest.raises(Stopped):
        small(tmp_path / "run", **{**LONG, "lr": 0.1}, save_every=1, progress=stop_at(3))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "fit_and_score", stopped)
        with pytest.raises(Stopped):
            small(tmp_path / "run", **LONG, overwrite=True)
    events: list[TrainingEvent] = []
    small(tmp_path / "run", **LONG, resume=True, progress=events.append)
    begin = next(event for event in events if event.kind == "begin")
    assert "resume: no state was saved, so the training starts from the beginning" in begin.values["lines"]
    assert digest(tmp_path / "run") == digest(whole)


def test_an_overwritten_run_keeps_nothing_of_the_one_before(small: Train, digest: Digest, tmp_path: Path) -> None:
    """The best weights of both are of the same step; those of the run before must not be linked."""
    with pytest.raises(Stopped):
        small(tmp_path / "run", **{**LONG, "lr": 0.1}, save_every=1, progress=stop_at(3))
    settings = {**LONG, "lr": 0.3, "save_every": 1}
    with pytest.raises(Stopped):
        small(tmp_path / "run", **settings, overwrite=True, progress=stop_at(3))
    small(tmp_path / "run", **settings, resume=True)
    small(tmp_path / "whole", **settings)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
