"""Kills, full disks and flipped bits, by hand: `python -m tests.fuzz.kills --kills 50 --disks 10 --flips 20`.

Commands are killed at random moments, run out of space on a small disk (a tmpfs, which needs root), or resume from a
state with one flipped bit. Afterwards the files that were there are unchanged, or complete; the command given again
ends as if nothing had happened; and a damaged state is refused. Prints what happened and exits with 1 at any failure.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import fork_server

WORDS = ("lovely", "warm", "great", "good", "dull", "cold", "poor", "bad", "film", "book", "song", "the", "and", "a")
COMMON = ["--preset", "tiny-bert", "--device", "cpu", "--batch-tokens", "512", "--lr", "1e-3", "--save-every", "1"]
TRAIN = ["--epochs", "3", "--dev-fraction", "0.2", "--log-every", "3", *COMMON]
PRETRAIN = ["--steps", "12", "--eval-every", "4", "--log-every", "3", "--window", "64", *COMMON]


class Wrong(AssertionError):
    """Something was lost, or used although it was damaged."""


def start(argv: Sequence[str], log: Path) -> fork_server.ForkedProcess:
    """A command in a process of its own, with one thread so that its sums are always the same."""
    with log.open("w", encoding="utf-8") as file:
        return fork_server.start("-m", "regard.cli", *argv, stdout=file.fileno(), stderr=file.fileno())


@dataclass
class Command:
    """A command of regard in a folder, and what must be there once it has ended."""

    name: str
    folder: Path
    argv: list[str]
    again: list[str]  # given once more after a kill
    outputs: list[Path]
    inputs: dict[Path, bytes] = field(default_factory=dict)
    whole: str = ""  # the digest of what it writes when nothing interrupts it
    seconds: float = 1.0

    def start(self, argv: Sequence[str]) -> fork_server.ForkedProcess:
        return start(argv, self.folder / "log")

    def run(self, argv: Sequence[str]) -> int:
        return self.start(argv).wait()

    def log(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "log").read_text(encoding="utf-8", errors="replace")
        return ""

    def digest(self) -> str:
        """Of the outputs that make up the result."""
        result = hashlib.sha256()
        for path in self.outputs:
            result.update(path.read_bytes() if path.is_file() else b"-")
        return result.hexdigest()

    def reset(self) -> None:
        for path in self.folder.iterdir():
            if path not in self.inputs and path.name != "log":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def check_inputs(self) -> None:
        for path, content in self.inputs.items():
            if path.read_bytes() != content:
                raise Wrong(f"{self.name}: {path.name} was changed")

    def check_no_parts(self) -> None:
        left = [path.name for path in self.folder.iterdir() if path.name.startswith(".")]
        if left:
            raise Wrong(f"{self.name}: left behind {left}")


def rows(count: int, seed: int) -> str:
    draw = random.Random(seed)
    lines = (" ".join(draw.choices(WORDS, k=8)) for _ in range(count))
    return "text,label\n" + "".join(f"{line},{('bad', 'good')[draw.randrange(2)]}\n" for line in lines)


def commands(folder: Path) -> list[Command]:
    """The four commands, each in its own folder, after one run that nothing interrupts."""
    made = []
    for name, make in {"train": _train, "pretrain": _pretrain, "predict": _predict, "check": _check}.items():
        here = folder / name
        here.mkdir(parents=True)
        command = make(here)
        made.append(command)
        began = time.monotonic()
        status = command.run(command.argv)
        command.seconds = time.monotonic() - began
        if status:
            raise Wrong(f"{command.name} failed before anything was done to it:\n{command.log()}")
        command.whole = command.digest()
        command.check_inputs()
        command.check_no_parts()
    return made


def _write_input(path: Path, content: str) -> dict[Path, bytes]:
    path.write_text(content, encoding="utf-8")
    return {path: path.read_bytes()}


def _train(here: Path) -> Command:
    inputs = _write_input(here / "rows.csv", rows(60, 1))
    argv = ["train", str(here / "rows.csv"), *TRAIN, "--out", str(here / "run")]
    return Command("train", here, argv, [*argv, "--resume"], [here / "run/model.safetensors"], inputs)


def _pretrain(here: Path) -> Command:
    text = rows(400, 2).replace(",", " ").replace("\n", ".\n\n")
    inputs = _write_input(here / "text.txt", text)
    argv = ["pretrain", str(here / "text.txt"), *PRETRAIN, "--out", str(here / "run")]
    return Command("pretrain", here, argv, [*argv, "--resume"], [here / "run/model.safetensors"], inputs)


def _predict(here: Path) -> Command:
    inputs = _write_input(here / "texts.csv", rows(1000, 3))
    model = here.parent / "model"
    shutil.copytree(here.parent / "train/run", model)
    argv = ["predict", str(model), "--input", str(here / "texts.csv"), "--output", str(here / "answers.jsonl")]
    argv += ["--device", "cpu"]
    return Command("predict", here, argv, argv, [here / "answers.jsonl"], inputs)


def _check(here: Path) -> Command:
    content = rows(3000, 4).replace("film", "film\u200b").replace("song", "song\u00a0")
    inputs = _write_input(here / "rows.csv", content)
    argv = ["check", str(here / "rows.csv"), "--fix", str(here / "fixed.csv")]
    return Command("check", here, argv, argv, [here / "fixed.csv"], inputs)


def kill(command: Command, draw: random.Random, count: int) -> Iterator[str]:
    """Kill so often; whenever a run comes to its end in spite of it, begin a new one."""
    simple = command.argv == command.again
    command.reset()
    if simple:
        command.outputs[0].write_text("old")
    killed = 0
    while killed < count:
        process = command.start(command.again if (command.folder / "run").exists() else command.argv)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(draw.uniform(0.02, 0.9) * command.seconds)
        process.kill()
        status = process.wait()
        if status == -9:
            killed += 1
        elif status:
            raise Wrong(f"{command.name} failed after a kill:\n{command.log()}")
        yield "killed" if status == -9 else "ended"
        command.check_inputs()
        if simple:
            there = command.outputs[0].read_bytes()
            if there != b"old" and command.digest() != command.whole:
                raise Wrong(f"{command.name}: {command.outputs[0].name} is half written")
        elif status == 0:
            _check_end(command)
            command.reset()
    if command.run(command.again if (command.folder / "run").exists() else command.argv):
        raise Wrong(f"{command.name} failed after the last kill:\n{command.log()}")
    _check_end(command)


def _check_end(command: Command) -> None:
    if command.digest() != command.whole:
        raise Wrong(f"{command.name}: the result is not the one of a run that nothing interrupts")
    command.check_inputs()
    command.check_no_parts()


@contextlib.contextmanager
def disk(folder: Path, size: int) -> Iterator[Callable[[int], None]]:
    """A disk of so many bytes at the folder; the function makes it larger."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)

    def resize(more: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={more}", str(folder)], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_disk(command: Command, draw: random.Random, folder: Path) -> str:
    """The command on a disk that becomes full, then with more space."""
    used = sum(path.stat().st_size for path in command.folder.rglob("*") if path.is_file())
    with disk(folder, draw.randrange(used // 4, used) // 4096 * 4096) as grow:
        there = Command(command.name, folder, [], [], [])
        moved = {str(command.folder): str(folder)}
        names = [path.relative_to(command.folder) for path in command.inputs]
        for name, content in zip(names, command.inputs.values(), strict=True):
            try:
                (folder / name).write_bytes(content)
            except OSError:
                grow(used * 20)
                (folder / name).write_bytes(content)
            there.inputs[folder / name] = content
        there.argv = [_moved(word, moved) for word in command.argv]
        there.again = [_moved(word, moved) for word in command.again]
        there.outputs = [folder / path.relative_to(command.folder) for path in command.outputs]
        there.whole = command.whole
        log = Path(tempfile.mkstemp()[1])
        status = start(there.argv, log).wait()
        words = log.read_text(encoding="utf-8", errors="replace")
        log.unlink()
        there.check_inputs()
        if "Traceback" in words or status not in (0, 1):
            raise Wrong(f"{command.name} on a full disk: exit {status}\n{words}")
        grow(used * 20 + (64 << 20))
        if status and start(there.again if (folder / "run").exists() else there.argv, log).wait():
            raise Wrong(f"{command.name} failed with space again:\n{log.read_text()}")
        log.unlink(missing_ok=True)
        _check_end(there)
        return "full" if status else "had space"


def _moved(word: str, moved: dict[str, str]) -> str:
    for old, new in moved.items():
        word = word.replace(old + "/", new + "/")
    return word


def flip_bit(command: Command, draw: random.Random) -> str:
    """One bit of a saved state is flipped; a resume refuses it, or it did not matter."""
    command.reset()
    process = command.start(command.argv)
    state = command.folder / "run/state"
    saves = draw.randint(1, 5)
    recorded: set[int] = set()
    while process.poll() is None and len(recorded) < saves:
        with contextlib.suppress(OSError):
            recorded.add((state / "state.json").stat().st_mtime_ns)
        time.sleep(0.002)
    process.kill()
    process.wait()
    files = sorted(path for path in state.rglob("*") if path.is_file()) if state.exists() else []
    if not files:
        return "no state"
    path = draw.choice(files)
    content = bytearray(path.read_bytes())
    bit = draw.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    status = command.run(command.again)
    if status == 0:
        _check_end(command)
        return f"{path.name}: did not matter"
    if status != 1 or "Traceback" in command.log() or path.name not in command.log():
        raise Wrong(f"{command.name}: bit {bit} of {path.name}: exit {status}\n{command.log()}")
    return f"{path.name}: refused"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--disks", type=int, default=10)
    parser.add_argument("--flips", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    return run(arguments.kills, arguments.disks, arguments.flips, arguments.seed)


def run(kills: int, disks: int, flips: int, seed: int, *, out: Any = sys.stdout) -> int:
    """All of it; 0 where nothing was lost and nothing damaged was used."""
    draw = random.Random(seed)
    wrong: list[str] = []
    counts = Counter[str]()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        every = commands(folder)
        for number, command in enumerate(every):
            share = kills // len(every) + (number < kills % len(every))
            with _recorded(wrong):
                for what in kill(command, draw, share):
                    counts[f"{command.name} {what}"] += 1
        tried = full = 0
        while full < disks and not wrong:
            command = every[tried % len(every)]
            command.reset()
            command.run(command.argv)
            with _recorded(wrong):
                what = fill_disk(command, draw, folder / f"disk{tried}")
                full += what == "full"
                counts[f"{command.name} disk {what}"] += 1
            tried += 1
        done = 0
        while done < flips and not wrong:
            command = every[done % 2]
            with _recorded(wrong):
                what = flip_bit(command, draw)
                done += what != "no state"
                counts[f"{command.name} flip {what}"] += 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for what, count in sorted(counts.items()):
        print(f"{count:4}  {what}", file=out)
    for error in wrong:
        print(f"WRONG: {error}", file=out)
    print(json.dumps({"kills": kills, "disks": disks, "flips": flips, "wrong": len(wrong)}), file=out)
    return 1 if wrong else 0


@contextlib.contextmanager
def _recorded(wrong: list[str]) -> Iterator[None]:
    try:
        yield
    except Wrong as error:
        wrong.append(str(error))


if __name__ == "__main__":
    sys.exit(main())
