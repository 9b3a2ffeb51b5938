"""int8, ONNX and small students, regard and its peers in one run.

    python benchmarks/compress.py speed                                # one text and batches, two cores, 2 minutes
    python benchmarks/compress.py tuned DATA-FOLDER --out runs         # the same for fine-tuned models, 5 minutes
    python benchmarks/compress.py embed                                # beside sentence-transformers, 3 minutes
    python benchmarks/compress.py parity                               # ONNX files of every encoder and head, 5 minutes
    python benchmarks/compress.py teachers DATA-FOLDER --out runs      # fine-tune minilm, on a GPU, 4 minutes
    python benchmarks/compress.py scores DATA-FOLDER --out runs        # what int8 loses, two cores, 15 minutes
    python benchmarks/compress.py students DATA-FOLDER --out runs      # teachers and students on a GPU, 9 minutes
    python benchmarks/compress.py ratio DATA-FOLDER --out runs --students DIR   # speed of these students, a few minutes
    python benchmarks/compress.py search DATA-FOLDER --out runs        # regard compress on each set, 20 minutes each
    python benchmarks/compress.py unseen DATA-FOLDER --out runs [--students DIR]   # rows for floor, and int8 losses
    python benchmarks/compress.py floor --out runs                     # 20 repetitions from stored rows, a minute

DATA-FOLDER holds sst2, imdb, ag_news, conll2003 and squad. Half of the held-out rows are validation rows, half test
rows. Every result is printed as a line of JSON and added to benchmarks/results/compress.jsonl. Without the package
sentence-transformers, or its ONNX export, the parts that need it are left out. If the variable OUT names a folder, the
results and small files with the trained models (see packed.py) are written there; a set whose files are missing is left
out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import regard

regard.prepare_process()

import numpy as np
import safetensors.torch
import torch
from common import alternate, lengths, median_times, milliseconds
from exact_texts import exact_inputs
from packed import pack, unpack
from sets import SETS, whole_sentences
from students import candidate_result, train_students

from regard.checkpoint.families import PRESETS, preset
from regard.checkpoint.source import from_preset, minilm_folder
from regard.comparison.trainings.compared_data import ComparedData
from regard.compression.compress import BelowFloor
from regard.compression.guarantee import compare_to_floor
from regard.compression.measure import Measured, empty_table, measure
from regard.compression.state import WorkFolder
from regard.config import ModelConfig
from regard.data.batching.examples import Inputs
from regard.data.records import Record
from regard.export.engines import INT8_FILE
from regard.export.int8_linear import int8_network
from regard.export.onnx_files import write_onnx_files
from regard.export.quantize_onnx import quiet
from regard.export.session import OnnxTransformer, open_session
from regard.metrics.paired.rows import RowTable
from regard.model.network import Network
from regard.predict.model_task import task_for
from regard.ragged import Ragged
from regard.tasks import task_class
from regard.training.load_data import LabeledData, fingerprint

RESULTS = Path(__file__).parent / "results" / "compress.jsonl"
OUT = Path(os.environ["OUT"]) if os.environ.get("OUT") else None
TEACHERS = ("sst2", "agnews", "conll", "imdb", "squad")
ENCODER_HEADS: tuple[dict[str, int], ...] = (
    {},
    {"pooled": 0},
    {"sequence": 3},
    {"token": 5},
    {"span": 2},
    {"masked": 0},
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=list(STAGES))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--sets", nargs="+", default=list(TEACHERS))
    parser.add_argument(
        "--students", type=Path, help="folder with the files of the stage students, for the stage ratio"
    )
    parser.add_argument("--families", nargs="+", help="presets of the stage parity, such as tiny-bert")
    parser.add_argument("--rows", type=int, default=None, help="training and held-out rows of each set")
    parser.add_argument("--minutes", type=float, default=8.5, help="no set is begun in the last two of them")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu-time", action="store_true", help="CPU time in the stages speed and embed")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--floor", type=float, default=0.99)
    parser.add_argument("--time", default="20m", help="time of each set in the stage search")
    parser.add_argument("--methods", nargs="+", default=["int8", "layers", "static", "ngram"])
    STAGES[parser.parse_args().stage](parser.parse_args())


def keep(**values: Any) -> None:
    """Print a result and add it to the file of all."""
    line = json.dumps({**values, "machine": platform.machine(), "threads": torch.get_num_threads()})
    print(line, flush=True)
    with (OUT / RESULTS.name if OUT else RESULTS).open("a") as file:
        file.write(line + "\n")


def engines() -> dict[str, Network]:
    """minilm on each engine; the ONNX files are written to a temporary folder."""
    folder = Path(tempfile.mkdtemp()) / "minilm"
    regard.export_onnx(str(minilm_folder()), folder, int8=True)
    network = regard.load("minilm", device="cpu", engine="torch").network
    return {
        "regard fp32": network,
        "regard int8": regard.load("minilm", device="cpu", engine="int8").inference_network,
        "torch int8": int8_network(network),
        "onnx fp32": OnnxTransformer(network, open_session(folder / "onnx" / "model.onnx")),  # type: ignore[arg-type]
        "exported int8": OnnxTransformer(network, open_session(folder / INT8_FILE)),  # type: ignore[arg-type]
    }


def speed(options: argparse.Namespace) -> None:
    """One text of 24 and 128 tokens, and batches of 64 texts, beside transformers in fp32 with padding.

    With --cpu-time, only one text, in CPU time; use it with OMP_NUM_THREADS=1 on a machine with other work.
    """
    from transformers import AutoModel

    peer = AutoModel.from_pretrained(minilm_folder()).eval()
    calls = {name: partial(_read, network) for name, network in engines().items()}
    rng = random.Random(0)
    cases = {
        name: Inputs(Ragged.of([[101, *(rng.randrange(1000, 29000) for _ in range(size - 2)), 102] for size in sizes]))
        for name, sizes in sizes_of_cases(options, rng).items()
    }
    for case, ms in beside_transformers(peer, calls, cases, options).items():
        keep_times("speed", case, ms, options)


def _read(network: Network, inputs: Inputs) -> torch.Tensor:
    return network.read(inputs.tokens)


def tuned(options: argparse.Namespace) -> None:
    """The same with the fine-tuned models in --out and their heads, on the words of held-out rows (see exact_texts.py).

    Both libraries get the same tokens. What is measured is the network with its heads, from token ids to logits:
    transformers computes the logits of all tokens, regard those that an answer of the task is made of. These are the
    first token for a classifier (all tokens if it reads their mean), the first token of each word for tags (of a text
    without neighbors), and the context and the first token for an answer to a question. `needed` counts them.
    """
    import transformers

    for name in options.sets:
        folder = options.out / name
        architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
        peer = getattr(transformers, architecture).from_pretrained(folder).eval()
        models = {
            f"regard {shown}": regard.load(folder, device="cpu", engine=engine)
            for shown, engine in (("fp32", "torch"), ("int8", "int8"))
        }
        model = models["regard int8"]
        task = task_for(model.checkpoint, model.folder)
        records = held_out(name, options.data, options.rows).test[:1000]
        cases = {
            case: exact_inputs(task, records, sizes, model.preprocessing())
            for case, sizes in sizes_of_cases(options, random.Random(0)).items()
        }
        calls = {key: partial(task.run, one.inference_network) for key, one in models.items()}
        for case, ms in beside_transformers(peer, calls, cases, options).items():
            tokens = cases[case].tokens
            needed = model.inference_network.needed_positions(tokens, cases[case].at)
            counts = {"tokens": tokens.tokens, "needed": tokens.tokens if needed is None else len(needed)}
            keep_times("tuned", case, ms, options, set=name, **counts)


def keep_times(stage: str, case: str, ms: dict[str, float], options: argparse.Namespace, **values: Any) -> None:
    ratios = {key: round(next(iter(ms.values())) / value, 2) for key, value in ms.items()}
    shown = {key: round(value, 2) for key, value in ms.items()}
    clock = "CPU" if options.cpu_time else "wall"
    keep(stage=stage, **values, case=case, clock=clock, ms=shown, times_as_fast=ratios)


def sizes_of_cases(options: argparse.Namespace, rng: random.Random) -> dict[str, list[int]]:
    """The numbers of tokens of the texts of each case; only single texts if CPU time is measured."""
    cases = {f"one text of {length} tokens": [length] for length in (24, 128)}
    if not options.cpu_time:
        cases |= {f"64 texts, mean {mean}": lengths(64, mean, rng=rng) for mean in (24, 128)}
    return cases


def beside_transformers(
    peer: Callable[..., object],
    calls: dict[str, Callable[[Inputs], object]],
    cases: dict[str, Inputs],
    options: argparse.Namespace,
) -> dict[str, dict[str, float]]:
    """Milliseconds of each case: of transformers, then of the calls."""
    clock = time.process_time if options.cpu_time else time.perf_counter
    results = {}
    for name, inputs in cases.items():
        every = [partial(peer, **_padded(inputs.tokens)), *(partial(call, inputs) for call in calls.values())]
        with torch.inference_mode():
            times = in_blocks(every, clock) if len(inputs.tokens) == 1 else median_times(*every, rounds=5, warm=2)
        results[name] = dict(zip(("transformers fp32", *calls), times, strict=True))
    return results


def _padded(batch: Ragged) -> dict[str, torch.Tensor]:
    """The batch as transformers reads it."""

    def pad(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence(batch.split(values), batch_first=True)

    padded = {"input_ids": pad(batch.ids), "attention_mask": pad(torch.ones_like(batch.ids))}
    return padded if batch.segments is None else {**padded, "token_type_ids": pad(batch.segments)}


def in_blocks(
    calls: list[Callable[[], object]], clock: Callable[[], float], *, blocks: int = 5, size: int = 8
) -> list[float]:
    """Median milliseconds of each call. The calls take turns in blocks: the threads of one library keep waiting for
    work for a while, and take the cores from the other library if it is called right after."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(blocks):
        for call, own in zip(calls, times, strict=True):
            for number in range(size + 4):
                began = clock()
                call()
                if number >= 4:
                    own.append(1e3 * (clock() - began))
    return [float(np.median(own)) for own in times]


def embed(options: argparse.Namespace) -> None:
    """Vectors of short and mixed texts, beside sentence-transformers with sorted batches.

    Its own int8 export needs the package optimum. What that runs is also measured: the file of ONNX Runtime's dynamic
    quantization with a scale per channel, on batches of 32 padded texts, sorted by length. With --cpu-time the numbers
    are texts per second of CPU time, which other work on the machine changes little.
    """
    from embed import cases
    from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found]

    folder = Path(tempfile.mkdtemp()) / "minilm"
    regard.export_onnx(str(minilm_folder()), folder, int8=True)
    ours = {
        "regard fp32": regard.load("minilm", device="cpu"),
        "regard int8": regard.load("minilm", device="cpu", engine="int8"),
    }
    peer = SentenceTransformer(str(minilm_folder()), device="cpu")
    padded = PaddedOnnx(folder)
    for name, texts in cases().items():
        calls: dict[str, Callable[[], Any]] = {
            "sentence-transformers fp32": partial(peer.encode, texts, normalize_embeddings=True, batch_size=32),
            "onnxruntime int8, padded": partial(padded.encode, texts),
        }
        calls |= {key: partial(model.embed, texts, normalize=True) for key, model in ours.items()}
        vectors = {key: call() for key, call in calls.items()}
        exact = vectors["regard fp32"]
        agreement = {key: round(_rank_correlation(exact, value), 5) for key, value in vectors.items()}
        clock = _cpu_milliseconds if options.cpu_time else milliseconds
        times = alternate(*(partial(clock, call) for call in calls.values()), rounds=min(options.rounds, 5), warm=0)
        rates = {key: round(1000 * len(texts) / value, 1) for key, value in zip(calls, times, strict=True)}
        ratios = {key: round(times[0] / value, 2) for key, value in zip(calls, times, strict=True)}
        keep(
            stage="embed",
            case=name,
            clock="CPU" if options.cpu_time else "wall",
            texts_per_second=rates,
            times_as_fast=ratios,
            rank_correlation=agreement,
        )


def _cpu_milliseconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return 1000 * (time.process_time() - started)


class PaddedOnnx:
    """minilm in int8 by ONNX Runtime's dynamic quantization, on padded batches sorted by length."""

    def __init__(self, folder: Path) -> None:
        import onnx
        import tokenizers
        from onnxruntime.quantization import QuantType, quantize_dynamic

        exact, target = folder / "onnx" / "model.onnx", folder.parent / "plain.onnx"
        model = onnx.load(str(exact))
        del model.graph.value_info[:]
        onnx.save(model, str(exact))
        with quiet():
            quantize_dynamic(str(exact), str(target), per_channel=True, weight_type=QuantType.QInt8)
        self.session = open_session(target)
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_padding()

    def encode(self, texts: list[str], batch_size: int = 32) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        vectors = np.zeros((len(texts), 384), np.float32)
        for start in range(0, len(texts), batch_size):
            rows = order[start : start + batch_size]
            encodings = self.tokenizer.encode_batch([texts[row] for row in rows])
            ids, mask = (np.array([getattr(one, key) for one in encodings]) for key in ("ids", "attention_mask"))
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self.session.run(["last_hidden_state"], feed)[0]
            mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            vectors[rows] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors


def _rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's correlation between the similarities of all pairs of texts."""
    above = np.triu_indices(len(first), 1)
    ranks = [np.argsort(np.argsort((vectors @ vectors.T)[above])) for vectors in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


def parity(options: argparse.Namespace) -> None:
    """ONNX files of every encoder and head on random weights; the largest difference must be below 1e-4."""
    worst = 0.0
    for name in (name for name in options.families or PRESETS if name.startswith("tiny-")):
        config = preset(name).config
        if not isinstance(config, ModelConfig) or config.kind != "encoder":
            continue
        for chosen in ENCODER_HEADS:
            try:
                network = from_preset(name, heads=chosen, seed=0).network
            except regard.RegardError:
                continue  # the family has no such head
            with tempfile.TemporaryDirectory() as folder:
                files = write_onnx_files(network, Path(folder))
            for file in files:
                worst = max(worst, file.max_difference)
                keep(stage="parity", family=name, heads=list(chosen), file=file.name, difference=file.max_difference)
    keep(stage="parity", largest=worst)


def held_out(name: str, root: Path, limit: int | None = None) -> ComparedData:
    """Training rows, and two halves of the held-out rows: validation and test. SST-2 holds out whole sentences."""
    data = SETS[name].load(root)
    if name == "sst2":
        data = whole_sentences(data)
    rows: list[Record] = list(data.dev)
    random.Random(0).shuffle(rows)
    train = list(data.train)
    if limit is not None:
        train, rows = random.Random(0).sample(train, min(limit, len(train))), rows[:limit]
    half = len(rows) // 2
    labeled: LabeledData = replace(data, train=train, dev=rows[:half], split_off=False)
    labeled = replace(labeled, fingerprint=fingerprint(train, labeled.dev))
    task = task_class(data.task).from_records([*data.train, *data.dev])
    return ComparedData(labeled, rows[half:], "held out", task)


def teachers(options: argparse.Namespace) -> None:
    """minilm fine-tuned on each set, with the settings that regard chooses."""
    until = time.monotonic() + 60 * options.minutes
    for name in options.sets:
        if time.monotonic() > until - 120:
            keep(stage="teachers", set=name, error="no time was left")
            continue
        try:
            train_teacher(name, options)
        except Exception as error:  # the other sets go on
            keep(stage="teachers", set=name, error=f"{type(error).__name__}: {error!s:.300}")


def train_teacher(name: str, options: argparse.Namespace) -> None:
    """Fine-tune minilm on one set, and pack it if it goes to another machine."""
    rows = held_out(name, options.data, options.rows)
    result = regard.train(rows.labeled, start="minilm", out=options.out / name, device=options.device, overwrite=True)
    keep(stage="teachers", set=name, scores=_values(result.scores), seconds=result.seconds)
    if OUT:
        pack(options.out / name, OUT / f"{name}.zip")


def _values(scores: dict[str, Any]) -> dict[str, float]:
    return {key: round(score.value, 4) for key, score in scores.items()}


def scores(options: argparse.Namespace) -> None:
    """What int8 loses on each set: the paired difference on the test half of the held-out rows, in points."""
    for name in options.sets:
        rows = held_out(name, options.data, options.rows)
        try:
            result = regard.compress(
                options.out / name, rows, out=options.out / f"{name}-int8", methods=["int8"], floor=0.9, overwrite=True
            )
        except BelowFloor as error:
            result = error.compression
        for one in result.candidates:
            if one.difference is not None:
                points = [
                    round(100 * value, 2) for value in (one.difference.value, one.difference.low, one.difference.high)
                ]
                keep(stage="scores", set=name, model=one.name, metric=result.metric, points=points, ms=one.latency_ms)


def students(options: argparse.Namespace) -> None:
    """Small students of each teacher, all trained at once on a GPU."""
    train_students(options, held_out, keep)


def ratio(options: argparse.Namespace) -> None:
    """Students that came back from a GPU (SET-STUDENT.zip in --students), in fp32 and int8, beside their teacher.

    CPU time of the test rows, texts in and answers out, the models taking turns: other work on the machine changes it
    little. Scores of the teacher are those in rows.zip, since its folder here may come from another training.
    """
    for file in sorted(options.students.glob("*-*.zip")):
        name, student = file.stem.split("-", 1)
        unpack(file, options.out / file.stem)
        rows = held_out(name, options.data, options.rows)
        models = {"teacher": regard.load(options.out / name, device="cpu", engine="torch")}
        models |= {
            engine: regard.load(options.out / file.stem, device="cpu", engine=engine) for engine in ("torch", "int8")
        }
        some = rows.test[:128]
        times = alternate(*(partial(_cpu_ms, model, some) for model in models.values()), rounds=3)
        with zipfile.ZipFile(options.students / "rows.zip") as archive:
            stored = json.loads(archive.read(f"{name}-small.compress/candidates/teacher/result.json"))
        metric = next(iter(stored["scores"]))
        teacher = stored["scores"][metric]["value"]
        for engine, value in list(zip(models, times, strict=True))[1:]:
            model = models[engine]
            measured = measure(model, task_for(model.checkpoint, model.folder), rows.labeled.dev, rows.test)
            score = measured.scores[metric].value
            keep(
                stage="ratio",
                set=name,
                student=student,
                engine=engine,
                parameters=measured.parameters,
                score=round(score, 4),
                kept=round(score / teacher, 4),
                times_as_fast=round(times[0] / value, 2),
                teacher_ms=round(times[0] / len(some), 3),
                student_ms=round(value / len(some), 3),
            )


def _cpu_ms(model: regard.Model, rows: list[Record]) -> float:
    started = time.process_time()
    model.predict(rows)
    return 1000 * (time.process_time() - started)


def search(options: argparse.Namespace) -> None:
    """All candidates of `regard compress`: score kept, speed and parameters beside the teacher's."""
    for name in options.sets:
        rows = held_out(name, options.data, options.rows)
        started = time.monotonic()
        settings: dict[str, Any] = {"methods": options.methods, "floor": options.floor, "time": options.time}
        try:
            result = regard.compress(
                options.out / name,
                rows,
                out=options.out / f"{name}-small",
                keep_all=True,
                device=options.device,
                progress=lambda progress: print(progress.stage, progress.done, dict(progress.values), flush=True),
                **settings,
            )
        except BelowFloor as error:
            result = error.compression
        teacher = result.teacher
        for one in (teacher, *result.candidates):
            if one.error is not None:
                keep(stage="search", set=name, model=one.name, error=one.error)
                continue
            part = one.scores[result.metric].value / teacher.scores[result.metric].value
            keep(
                stage="search",
                set=name,
                model=one.name,
                metric=result.metric,
                score=round(one.scores[result.metric].value, 4),
                kept=round(part, 4),
                times_as_fast=round(one.texts_per_second / teacher.texts_per_second, 2),
                parameters=one.parameters,
                ms=one.latency_ms,
                train_seconds=one.train_seconds,
            )
        keep(stage="search", set=name, chosen=result.chosen, seconds=round(time.monotonic() - started))


def unseen(options: argparse.Namespace) -> None:
    """Answer rows that no training saw with each teacher, in fp32, int8 and with weights in fp16, and with the students
    in --students in fp32 and int8."""
    for name in options.sets:
        rows = unseen_rows(name, options.data)[: options.rows]
        dev = held_out(name, options.data).labeled.dev[:300]  # temperature and thresholds are tuned on these
        folders = {"teacher": options.out / name}
        for file in sorted(options.students.glob(f"{name}-*.zip")) if options.students else []:
            folders[file.stem.removeprefix(f"{name}-")] = options.out / file.stem
            unpack(file, options.out / file.stem)
        work = WorkFolder(options.out / f"{name}-unseen.compress")
        teacher: Measured | None = None
        for key, folder in folders.items():
            models = {
                key: regard.load(folder, device="cpu", engine="torch"),
                f"{key}-int8": regard.load(folder, device="cpu", engine="int8"),
            }
            if key == "teacher":
                models["fp16"] = regard.load(_in_half(folder), device="cpu", engine="torch")
            for shown, model in models.items():
                measured = measure(model, task_for(model.checkpoint, model.folder), dev, rows)
                teacher = teacher or measured
                work.write(shown, candidate_result(shown, measured), measured.dev, measured.test)
                metric = next(iter(measured.scores))
                lost = compare_to_floor(measured.test, teacher.test, metric, options.floor).difference
                points = [round(100 * value, 2) for value in (lost.value, lost.low, lost.high)]
                score = round(measured.scores[metric].value, 4)
                about = {"set": name, "model": shown, "rows": len(rows), "metric": metric}
                keep(stage="unseen", **about, score=score, points=points, ms=measured.latency_ms)


def _in_half(folder: Path) -> Path:
    """A copy whose weights are rounded to fp16, as the candidate fp16 of `regard compress`."""
    copy = Path(tempfile.mkdtemp()) / folder.name
    shutil.copytree(folder, copy)
    weights = safetensors.torch.load_file(copy / "model.safetensors")
    halves = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in weights.items()}
    safetensors.torch.save_file(halves, copy / "model.safetensors", {"format": "pt"})
    return copy


def unseen_rows(name: str, root: Path) -> list[Record]:
    """Rows that neither trained a teacher nor chose its weights: for SST-2 also the phrases of held-out sentences."""
    data = held_out(name, root)
    if name != "sst2":
        return data.test
    seen = {record.input_texts for record in (*data.labeled.train, *data.labeled.dev)}
    whole = SETS[name].load(root)
    rows = [record for record in (*whole.train, *whole.dev) if record.input_texts not in seen]
    random.Random(0).shuffle(rows)
    return rows


def floor(options: argparse.Namespace) -> None:
    """20 repetitions with other splits of the stored rows of the stage unseen: does the choice hold the floor on rows
    that neither a training nor the choice saw?"""
    for name in options.sets:
        folder = options.out / f"{name}-unseen.compress" / "candidates"
        features = {path.parent.name: _stored(path) for path in sorted(folder.glob("*/rows.npz"))}
        if "teacher" not in features:
            print(f"{name}: no stored rows in {folder}; run the stage unseen first")
            continue
        teacher = regard.load(options.out / name, device="cpu")
        like = empty_table(task_for(teacher.checkpoint, teacher.folder).meter())
        tables = {key: RowTable(rows, like.scores) for key, rows in features.items()}
        costs = {key: json.loads((folder / key / "result.json").read_text())["latency_ms"]["24"] for key in tables}
        outcomes = [_repetition(tables, costs, like.main, options.floor, seed) for seed in range(20)]
        names = [one for one, _ in outcomes if one is not None]
        holds = sum(is_right is True for _, is_right in outcomes)
        keep(stage="floor", set=name, repetitions=20, chosen=len(names), holds=holds, names=sorted(set(names)))


def _stored(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as rows:
        return np.asarray(rows["test"])


def _part(table: RowTable, rows: np.ndarray) -> RowTable:
    return RowTable(table.features[rows], table.scores)


def _repetition(
    tables: dict[str, RowTable], costs: dict[str, float], metric: str, floor: float, seed: int
) -> tuple[str | None, bool | None]:
    """Choose on a fifth of the rows, test on two fifths, and look at the others; (chosen, whether it holds)."""
    teacher = tables["teacher"]
    order = np.random.default_rng(seed).permutation(teacher.rows)
    dev, test, unseen = np.split(order, [teacher.rows // 5, 3 * teacher.rows // 5])
    costly = sorted((key for key in tables if key != "teacher"), key=costs.__getitem__)
    margins = {
        key: compare_to_floor(_part(tables[key], dev), _part(teacher, dev), metric, floor, level=0.5).margin
        for key in costly
    }
    likely = [key for key in costly if margins[key].low > 0]
    level = 0.95
    for name in [*likely, *(key for key in costly if margins[key].low <= 0 < margins[key].value)]:
        table = tables[name]
        if compare_to_floor(_part(table, test), _part(teacher, test), metric, floor, level=level).holds:
            return name, table.value(metric, unseen) >= floor * teacher.value(metric, unseen)
        level = 1 - (1 - level) / 2
    return None, None


STAGES: dict[str, Callable[[argparse.Namespace], None]] = {
    "speed": speed,
    "tuned": tuned,
    "embed": embed,
    "parity": parity,
    "teachers": teachers,
    "scores": scores,
    "students": students,
    "ratio": ratio,
    "search": search,
    "unseen": unseen,
    "floor": floor,
}

if __name__ == "__main__":
    main()
