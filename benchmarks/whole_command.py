"""Seconds of a whole training, from the start of Python to the saved model: `regard train` and transformers' Trainer.

    python benchmarks/whole_command.py --data DATA-FOLDER [--sets rte conll sst2 imdb squad] [--start FOLDER]

One process at a time. regard runs with its defaults and an empty compile cache ("cold"), with `--warm` once more
("warm"), and scores its validation rows after each epoch. The Trainer runs with its usual recipe (sets.py) and
evaluates nothing: plain, with batches grouped by length, and with batches grouped by length and compiled. `--steps N`
stops it after N steps; the remaining steps are assumed to take as long as the mean step after the first tenth. Bytecode
of all packages is written first, as pip does when it installs them: without it, every start of Python compiles a
thousand modules.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sets import SETS

REGARD = "import sys; from regard.cli.__main__ import run; sys.exit(run())"  # as the script `regard` does it
WAYS = ("plain", "grouped", "grouped compiled")
PACKAGES = (  # that a training imports, here or in the Trainer's script
    *("regard", "torch", "transformers", "tokenizers", "safetensors", "accelerate", "huggingface_hub", "numpy"),
    *("scipy", "sklearn", "matplotlib", "PIL", "rich", "tyro", "seqeval"),
)


def trainer(name: str, data: Path, start: Path, way: str, steps: int) -> None:
    """The Trainer's script, run as a process of its own; prints a line of JSON."""
    import peer

    from regard.tasks import task_class

    data_set = SETS[name]
    rows = data_set.load(data)
    task = task_class(rows.task).from_records(rows.train)
    options: dict[str, Any] = {}
    if "grouped" in way:
        options["train_sampling_strategy"] = "group_by_length"
    if "compiled" in way:
        options["torch_compile"] = True
    with tempfile.TemporaryDirectory() as folder:
        warm = 20 if steps < 0 else max(steps // 10, 1)
        result = peer.train(
            data_set, task, rows.train, start, Path(folder), steps=steps, warm=warm, every_row=True, **options
        )
    print(json.dumps(result), flush=True)


def with_bytecode(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment of processes that find the bytecode of all packages in this folder."""
    left = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = left | {"PYTHONPYCACHEPREFIX": str(folder)}
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    folders = [place for spec in specs if spec for place in spec.submodule_search_locations or ()]
    compile_all = [sys.executable, "-m", "compileall", "-q", "-j", "0", *folders]
    subprocess.run(compile_all, env=environment, stdout=subprocess.DEVNULL, check=False)  # templates do not compile
    return environment


def seconds_of(command: list[str], environment: dict[str, str]) -> tuple[float, str]:
    """How long a process runs, and the last line it prints."""
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    took = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return took, (done.stdout.strip().splitlines() or [""])[-1]


def regard_row(name: str, data: Path, start: Path, environment: dict[str, str]) -> dict[str, Any]:
    """One run of `regard train` with its defaults."""
    data_set = SETS[name]
    columns = [f"{key}={value}" for key, value in data_set.read.get("columns", {}).items()]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", REGARD, "train", str(data / data_set.path), "--start", str(start)]
        command += ["--out", f"{folder}/model", "--json", *(["--columns", ",".join(columns)] if columns else [])]
        whole, _ = seconds_of(command, environment)
        run = json.loads(Path(folder, "model", "run.json").read_text())
    scores = {key: round(value["value"], 4) for key, value in run["scores"].items()}
    return {"whole": round(whole, 1), "done": run["done"], "scores": scores}


def trainer_row(
    name: str, data: Path, start: Path, way: str, steps: int, environment: dict[str, str]
) -> dict[str, Any]:
    """One run of the Trainer; steps that were left out are added at the mean time of a step."""
    command = [sys.executable, __file__, "--trainer", way, "--sets", name, "--data", str(data)]
    command += ["--start", str(start), "--steps", str(steps)]
    whole, line = seconds_of(command, environment)
    result = json.loads(line)
    left = max(result["all_steps"] - steps, 0) if steps > 0 else 0
    return {
        "ran": round(whole, 1),
        "steps_run": result["all_steps"] - left,
        "all_steps": result["all_steps"],
        "ms_per_step": round(result["ms_per_step"], 2),
        "whole": round(whole + left * result["ms_per_step"] / 1e3, 1),
    }


def measure(name: str, options: argparse.Namespace, environment: dict[str, str]) -> None:
    """All ways on one set, with caches of its own; each result is printed and written as soon as it is there."""
    with tempfile.TemporaryDirectory() as cache:
        environment = environment | {"XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor"}
        for way in ["cold", *(["warm"] if options.warm else []), *options.ways]:
            if way in WAYS:
                row = trainer_row(name, options.data, options.start, way, options.steps, environment)
            else:
                row = regard_row(name, options.data, options.start, environment)
            line = json.dumps({"set": name, "way": way, **row})
            print(line, flush=True)
            with options.out.open("a") as file:
                file.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--start", type=Path, default=None, help="the folder to fine-tune; minilm when left out")
    parser.add_argument("--sets", nargs="+", default=["rte", "conll", "sst2", "imdb", "squad"], choices=list(SETS))
    parser.add_argument("--steps", type=int, default=-1, help="stop the Trainer after so many steps")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS, help="how the Trainer runs")
    parser.add_argument("--warm", action="store_true", help="run regard a second time, with the compile cache filled")
    parser.add_argument("--trainer", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "whole_command.jsonl")
    options = parser.parse_args()
    if options.start is None:
        from regard.checkpoint.source import minilm_folder

        options.start = minilm_folder()
    if options.trainer:
        trainer(options.sets[0], options.data, options.start, options.trainer, options.steps)
        return
    with tempfile.TemporaryDirectory() as folder:
        bytecode = with_bytecode(dict(os.environ), Path(folder))
        for name in options.sets:
            measure(name, options, bytecode)


if __name__ == "__main__":
    main()
