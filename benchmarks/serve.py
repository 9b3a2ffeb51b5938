"""The server beside others, and under load, faults and nonsense.

    python benchmarks/serve.py compare --seconds 20       texts/s with p99 below 100 ms, latency at low load
    python benchmarks/serve.py soak --minutes 30          three times the capacity, bad requests, clients that leave
    python benchmarks/serve.py fuzz --requests 100000
    python benchmarks/serve.py faults --repeats 20        killed workers, reloads, SIGTERM, a full disk
    python benchmarks/serve.py coldstart --repeats 5

`--peers VENV` is an environment with LitServe, infinity-emb, transformers and schemathesis, by default the one that
runs this script; what it lacks is left out. infinity-emb 0.0.78 needs transformers below 5 and
prometheus-fastapi-instrumentator: `--infinity VENV` is an environment of its own.
The classifier is trained from minilm on a sample when `--classifier` is not set. Results are also written as JSON to
`--out`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import serve_stages
from load_test import LoadResult, LoadTest, Workload, best_rate, search_rate
from serve_process import RunningServer, environment, free_port, other_server, regard_server

import regard

SYSTEMS = ("regard fp32", "regard int8", "plain", "litserve", "infinity")
GOAL_MS = 100.0


def classifier(folder: Path | None, work: Path) -> str:
    """A folder with a fine-tuned classifier."""
    if folder is not None:
        return str(folder)
    out = work / "classifier"
    if not (out / "config.json").exists():
        for command in (
            ["sample", "messages", "--out", str(work / "messages.csv"), "--overwrite"],
            [
                "train",
                str(work / "messages.csv"),
                "--out",
                str(out),
                "--start",
                "minilm",
                "--epochs",
                "1",
                "--overwrite",
            ],
        ):
            subprocess.run(
                [sys.executable, "-m", "regard.cli", *command], check=True, env=environment(), stdout=subprocess.DEVNULL
            )
    return str(out)


@contextmanager
def peer(name: str, folder: str, kind: str, args: argparse.Namespace) -> Iterator[RunningServer | None]:
    """A server of another library; None if it does not start."""
    port, python = free_port(), str(args.peers / "bin" / "python")
    log = args.work / f"{name}.log"
    if name == "infinity":
        model = str(Path(folder).resolve())
        command = [
            str((args.infinity or args.peers) / "bin" / "infinity_emb"),
            "v2",
            "--model-id",
            model,
            "--served-model-name",
            "m",
        ]
        command += ["--engine", "torch", "--device", "cpu", "--port", str(port)]
        command += ["--url-prefix", "/v1", "--host", "127.0.0.1"]
    else:
        command = [python, str(Path(__file__).with_name("serve_peers.py")), name, folder, kind, str(port)]
    if not Path(command[0]).exists():
        print(f"{name}: there is no {command[0]}", file=sys.stderr)
        yield None
        return
    with other_server(command, port, log) as server:
        route, body = route_of(name, kind)
        try:
            server.wait(route, body, seconds=180)
        except SystemExit as error:
            print(f"{name} is left out: {error}; see {log}", file=sys.stderr)
            yield None
            return
        yield server


def route_of(name: str, kind: str) -> tuple[str, dict[str, Any]]:
    if name != "infinity":
        return f"/{kind}", {"text": "a film"}
    if kind == "embed":
        return "/v1/embeddings", {"input": "a film", "model": "m"}
    return "/v1/classify", {"input": ["a film"], "model": "m"}


def started(
    name: str, folder: str, kind: str, args: argparse.Namespace
) -> AbstractContextManager[RunningServer | None]:
    if name.startswith("regard"):
        engine = "int8" if name.endswith("int8") else "torch"
        return regard_server(folder, "--engine", engine, "--device", "cpu", log=args.work / "regard.log")
    return peer(name, folder, kind, args)


def measure(name: str, server: RunningServer, kind: str, mean: float, args: argparse.Namespace) -> dict[str, Any]:
    """The best rate and the latency at low load."""
    route, body = route_of(name, kind)
    workload = Workload(route, mean_tokens=mean, model=body.get("model"))
    test = LoadTest(server.url, workload, seconds=args.seconds, timeout=20)
    low = test.measure(args.low_rate)

    costs: dict[float, float] = {}  # processor time per answer, by rate

    def at(rate: float) -> LoadResult:
        before = server.cpu_seconds()
        result = test.measure(rate)
        costs[rate] = (server.cpu_seconds() - before) / max(1, result.requests - sum(result.errors.values()))
        print(f"  {name} {kind} {mean:g}: {rate:.1f}/s p99 {result.p99_ms:.0f} ms", file=sys.stderr, flush=True)
        return result

    results = search_rate(at, goal_ms=GOAL_MS, start=8)
    best = best_rate(results, goal_ms=GOAL_MS)
    return {
        "system": name,
        "task": kind,
        "mean_tokens": mean,
        "texts_per_second": None if best is None else round(best, 1),
        "peak_per_second": round(max(one.throughput for one in results), 1),
        "cpu_ms_per_text": None if best is None else round(1000 * costs[best], 1),
        "low_p50_ms": round(low.p50_ms, 1),
        "low_p99_ms": round(low.p99_ms, 1),
        "memory_mb": round(server.memory() / 1e6),
        "load_average": round(os.getloadavg()[0], 1),
    }


def compare(args: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for kind in args.tasks:
        folder = classifier(args.classifier, args.work) if kind == "predict" else str(regard.load("minilm").folder)
        for name in args.systems:
            if name == "infinity" and kind == "predict":
                continue  # its route takes lists only
            with started(name, folder, kind, args) as server:
                if server is None:
                    continue
                server.wait(*route_of(name, kind))
                rows += [measure(name, server, kind, mean, args) for mean in args.means]
    for row in rows:
        peers = [
            other["texts_per_second"] or 0.0
            for other in rows
            if not other["system"].startswith("regard")
            and (other["task"], other["mean_tokens"]) == (row["task"], row["mean_tokens"])
        ]
        best = max(peers, default=0.0)
        row["times_best_peer"] = round((row["texts_per_second"] or 0.0) / best, 2) if best else None
    return {"goal_ms": GOAL_MS, "seconds": args.seconds, "rows": rows}


def print_rows(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("compare", "soak", "fuzz", "faults", "coldstart"))
    parser.add_argument("--work", type=Path, default=Path("runs/serve"), help="folder for models and logs")
    parser.add_argument("--peers", type=Path, default=Path(sys.prefix), help="environment with other servers")
    parser.add_argument("--infinity", type=Path, help="environment with infinity-emb, by default --peers")
    parser.add_argument("--classifier", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each rate in compare")
    parser.add_argument("--low-rate", type=float, default=2.0)
    parser.add_argument("--means", type=float, nargs="+", default=[24.0, 128.0])
    parser.add_argument("--tasks", nargs="+", default=["embed", "predict"])
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--requests", type=int, default=100_000, help="of fuzz")
    parser.add_argument("--repeats", type=int, default=20)
    return parser.parse_args()


def main() -> None:
    args = parse()
    args.work.mkdir(parents=True, exist_ok=True)
    clock = time.monotonic()
    if args.stage == "compare":
        result = compare(args)
    elif args.stage == "coldstart":
        result = serve_stages.coldstart(args.repeats, args.work)
    else:
        folder = classifier(args.classifier, args.work)
        if args.stage == "soak":
            result = serve_stages.soak(folder, args.minutes, args.work)
        elif args.stage == "fuzz":
            found = serve_stages.find_schemathesis(args.peers)
            result = serve_stages.fuzz(folder, args.requests, args.work, found)
        else:
            result = serve_stages.faults(folder, args.repeats, args.work)
    result |= {"stage": args.stage, "wall_s": round(time.monotonic() - clock), "load_average": os.getloadavg()[0]}
    print_rows(result.get("rows", []))
    text = json.dumps(result, indent=1)
    print(text)
    if args.out is not None:
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
