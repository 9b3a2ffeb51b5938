"""A study of training defaults: many sets, sizes and settings, several draws, in a few processes side by side.

    python benchmarks/defaults.py --data DATA --make MADE
    python benchmarks/defaults.py --data MADE --jobs jobs.jsonl --out benchmarks/results/defaults.jsonl --workers 18
    python benchmarks/defaults.py --out benchmarks/results/defaults.jsonl --table
    python benchmarks/defaults.py --out benchmarks/results/defaults.jsonl --compare "refit" "no refit"

`--make` writes the sets into a folder of small files, for machines that lack the original data. A job is a JSON object
per line: {"tag": "mean", "set": "sst2", "rows": 6000, "draw": 0, "settings": {"lr": 1e-4}}. `per_class` instead of
`rows` draws that many rows of each class, and `rows` of conll are documents ("documents": false hides where they
begin); "similarity": {"pairs": 16000, "per_step": 32, "lr": 1e-4} changes how a network learns similarity before text
pairs, "contrastive": {"steps": 50, "texts": 32, "lr": 5e-5, "repeats": 1} how it begins with few labels; "setfit": true
trains SetFit instead (pip install setfit). Every set has a fixed order: the first 1,000 rows (at most a quarter) are
the test rows, training rows are drawn from the rest. With "test_rows": 2000 every draw has other test rows, as many as
that (at most a quarter), which says more about small differences; sst2-all has other whole sentences in every draw. No
official test split is used. Start the CUDA MPS server if many workers share a GPU.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import lzma
import multiprocessing
import random
import re
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from sets import held_out_sentences

import regard
from regard.training.defaults.recipes import ContrastiveTraining, SimilarityTraining
from regard.training.head_init import initializer

Rows = list[dict[str, Any]]
TEST_ROWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the data, or one that --make wrote")
    parser.add_argument("--make", type=Path, help="write all sets into this folder, and end")
    parser.add_argument("--jobs", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--start", default="minilm")
    parser.add_argument("--table", action="store_true", help="print the means of all results instead")
    parser.add_argument("--compare", nargs=2, metavar="TAG", help="print the differences of two tags on equal draws")
    args = parser.parse_args()
    if args.make is not None:
        make(args.data, args.make)
        return
    if args.out is None:
        parser.error("--out is missing")
    if args.table or args.compare:
        results = [json.loads(line) for line in args.out.read_text().splitlines()]
        print(compare(results, *args.compare) if args.compare else table(results))
    else:
        run_all([json.loads(line) for line in args.jobs.read_text().splitlines()], args)


def make(data: Path, folder: Path) -> None:
    """Write every set as a file of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in SETS.items():
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows(data))


@cache
def rows_of(name: str, data: Path) -> Rows:
    """The rows of a set, as `--make` wrote them, or made now."""
    made = data / f"{name}.jsonl.gz"
    if not made.exists():
        return SETS[name](data)
    with gzip.open(made, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run_all(jobs: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """All jobs in `workers` processes; each result is written as soon as it is there, until the time is over."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.workers, mp_context=context) as pool:
        futures = {pool.submit(run, job, args.data, args.start): job for job in jobs}
        try:
            for future in as_completed(futures, timeout=60 * args.minutes):
                with args.out.open("a") as file:
                    file.write(json.dumps({**futures[future], **future.result()}) + "\n")
        except TimeoutError:
            left = sum(not future.done() for future in futures)
            print(f"{left} of {len(jobs)} jobs are left", flush=True)
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.kill()


def run(job: dict[str, Any], data: Path, start: str) -> dict[str, Any]:
    """Train on the rows of a job and score its test rows."""
    train, test = split(rows_of(job["set"], data), job)
    try:
        if job["set"] == "conll":
            return run_tags(job, train, test, start)
        return run_setfit(job, train, test) if job.get("setfit") else run_regard(job, train, test, start)
    except Exception:  # of any kind: the other jobs go on
        return {"error": traceback.format_exc()[-600:]}


def run_regard(job: dict[str, Any], train: Rows, test: Rows, start: str) -> dict[str, Any]:
    with changed_starts(job), tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        regard.train(train, out=Path(folder, "run"), start=start, seed=job["draw"], **job.get("settings", {}))
        seconds = time.monotonic() - began
        scores = regard.evaluate(Path(folder, "run"), test).scores
    return {"scores": {name: round(score.value, 5) for name, score in scores.items()}, "seconds": round(seconds, 1)}


def run_tags(job: dict[str, Any], train: Rows, test: Rows, start: str) -> dict[str, Any]:
    """As `run_regard`, for documents: the validation rows are the test rows, which choose nothing but the last step."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "set").mkdir()
        for name, rows in (("train", train), ("valid", test)):
            text = "".join(row["document"] for row in rows)
            text = text if job.get("documents", True) else re.sub(r"-DOCSTART-.*\n\n", "", text)
            Path(folder, "set", f"{name}.txt").write_text(text, encoding="utf-8")
        began = time.monotonic()
        settings = {"start": start, "seed": job["draw"], **job.get("settings", {})}
        scores = regard.train(Path(folder, "set"), out=Path(folder, "run"), **settings).scores
    return {"scores": {"f1": round(scores["f1"].value, 5)}, "seconds": round(time.monotonic() - began, 1)}


@contextmanager
def changed_starts(job: dict[str, Any]) -> Iterator[None]:
    """In this block, a network learns before its first step what the job says."""
    similarity, pairs = initializer.similarity_training, initializer.contrastive_training
    if "similarity" in job:
        initializer.similarity_training = lambda *_, **__: SimilarityTraining(**job["similarity"])
    if "contrastive" in job:
        initializer.contrastive_training = lambda *_, **__: ContrastiveTraining(**job["contrastive"])
    try:
        yield
    finally:
        initializer.similarity_training, initializer.contrastive_training = similarity, pairs


def run_setfit(job: dict[str, Any], train: Rows, test: Rows) -> dict[str, Any]:
    """SetFit with 20 pairs per text and label, in fp32."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    from regard.checkpoint.source import minilm_folder

    names = sorted({row["label"] for row in train})
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        model = SetFitModel.from_pretrained(str(minilm_folder()))
        model.model_body.float()
        options: dict[str, Any] = {"num_iterations": 20, "batch_size": 16, "num_epochs": 1, "seed": job["draw"]}
        options |= {"output_dir": folder, "report_to": "none", "save_strategy": "no", "show_progress_bar": False}
        labels = [names.index(row["label"]) for row in train]
        rows = Dataset.from_dict({"text": [row["text"] for row in train], "label": labels})
        Trainer(model=model, args=TrainingArguments(**options), train_dataset=rows).train()
        seconds = time.monotonic() - began
        answers = model.predict([row["text"] for row in test], show_progress_bar=False)
    right = sum(names[int(answer)] == row["label"] for answer, row in zip(answers, test, strict=True))
    return {"scores": {"accuracy": round(right / len(test), 5)}, "seconds": round(seconds, 1)}


def split(rows: Rows, job: dict[str, Any]) -> tuple[Rows, Rows]:
    """Training rows, drawn by the job's draw, and test rows: the same for all jobs of a set, or those of the draw."""
    if job["set"] == "sst2-all":
        return whole_sentences(rows, job["draw"])
    if "test_rows" in job:
        rows = random.Random(100 + job["draw"]).sample(rows, len(rows))
    count = min(job.get("test_rows", TEST_ROWS), len(rows) // 4)
    test, pool = rows[:count], rows[count:]
    rng = random.Random(job["draw"])
    if "per_class" not in job:
        return rng.sample(pool, min(job["rows"], len(pool))), test
    by_class: dict[str, Rows] = defaultdict(list)
    for row in pool:
        by_class[row["label"]].append(row)
    drawn = [row for label in sorted(by_class) for row in rng.sample(by_class[label], job["per_class"])]
    return drawn, test


def whole_sentences(rows: Rows, draw: int, count: int = 1800) -> tuple[Rows, Rows]:
    """SST-2 has phrases of sentences: the test rows are whole sentences, none of whose phrases is a training row."""
    chosen, parts = held_out_sentences([row["text"] for row in rows], count, seed=draw)
    test = {row["text"]: row for row in rows if row["text"].strip() in chosen}
    return [row for row in rows if row["text"] not in parts], list(test.values())


def table(results: list[dict[str, Any]]) -> str:
    """The mean of the main score by tag (rows) and by set and size (columns), in percent, as Markdown."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for result in results:
        if "scores" in result:
            size = f"{result['per_class']} per class" if "per_class" in result else f"{result['rows']} rows"
            name = "mcc" if result["set"] == "cola" else next(iter(result["scores"]))
            values[result["tag"], f"{result['set']}, {size}"].append(100 * result["scores"][name])
    columns = sorted({column for _, column in values})
    lines = [["settings", *columns], ["---"] * (len(columns) + 1)]
    for tag in dict.fromkeys(tag for tag, _ in values):
        cells = [values.get((tag, column)) for column in columns]
        lines.append([tag, *(f"{mean(cell):.1f}" if cell else "" for cell in cells)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compare(results: list[dict[str, Any]], one: str, other: str) -> str:
    """The mean difference of two tags on the draws that both have, with its standard error, as Markdown."""
    values: dict[tuple[str, str], dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for result in results:
        if "scores" in result and result["tag"] in (one, other):
            size = f"{result['per_class']} per class" if "per_class" in result else f"{result['rows']} rows"
            name = "mcc" if result["set"] == "cola" else next(iter(result["scores"]))
            values[result["set"], size][result["draw"]][result["tag"]] = 100 * result["scores"][name]
    lines = [["set", "size", "draws", one, other, "difference"], ["---"] * 6]
    for (name, size), draws in sorted(values.items()):
        both = [(draw[one], draw[other]) for draw in draws.values() if len(draw) == 2]
        if len(both) < 2:
            continue
        differences = [first - second for first, second in both]
        error = stdev(differences) / len(both) ** 0.5
        means = [f"{mean(column):.1f}" for column in zip(*both, strict=True)]
        lines.append([name, size, str(len(both)), *means, f"{mean(differences):+.2f} ± {error:.2f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shuffled(rows: Iterator[dict[str, Any]], limit: int | None = None) -> Rows:
    made = list(rows)
    random.Random(1).shuffle(made)
    return made[:limit]


def tsv(path: Path, *, header: bool = True) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        if header:
            next(lines)
        yield from lines


def csv_rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def questions(data: Path, *, topics: int, per_topic: int) -> Rows:
    """Questions of SQuAD with the title of their article as the class: many classes, short texts, as intents are."""
    with gzip.open(data / "squad/train-v1.1.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    rng = random.Random(0)
    by_title = {
        article["title"]: [qa["question"].strip() for part in article["paragraphs"] for qa in part["qas"]]
        for article in articles
    }
    titles = sorted(title for title, texts in by_title.items() if len(texts) >= per_topic // 2)
    chosen = rng.sample(titles, topics)
    return shuffled(
        {"text": text, "label": title}
        for title in chosen
        for text in rng.sample(by_title[title], min(per_topic, len(by_title[title])))
    )


def novels(data: Path, *, count: int = 12, passages: int = 220, words: int = 40) -> Rows:
    """Passages of novels with the novel as the class: style rather than topic."""
    with lzma.open(data / "corpus/novels.txt.xz", "rt", encoding="utf-8") as file:
        text = file.read()
    long = [document.split() for document in text.split("\n\n") if len(document) > 200_000]
    rng = random.Random(0)
    return shuffled(
        {"text": " ".join(novel[start : start + words]), "label": f"novel {number}"}
        for number, novel in enumerate(rng.sample(long, count))
        for start in rng.sample(range(2000, len(novel) - 3000), passages)
    )


def reviews(data: Path) -> Rows:
    """Whole film reviews."""
    return shuffled({"text": row["text"], "label": row["label"]} for row in csv_rows(data / "imdb/train.csv.gz"))


def short_reviews(data: Path) -> Rows:
    """The first 150 words of film reviews."""
    rows = csv_rows(data / "imdb/train.csv.gz")
    return shuffled(({"text": " ".join(row["text"].split()[:150]), "label": row["label"]} for row in rows), 8000)


def pairs(data: Path, name: str, first: int, second: int, label: int) -> Rows:
    return shuffled(
        {"first": row[first], "second": row[second], "label": f"is {row[label]}"}
        for row in tsv(data / f"glue/{name}/train.tsv.gz")
    )


def sentences(data: Path) -> Rows:
    """Phrases of at least five words."""
    rows = tsv(data / "sst2/train.tsv.gz")
    long = ({"text": row[0], "label": f"is {row[1]}"} for row in rows if len(row[0].split()) >= 5)
    return shuffled(long, 20_000)


def phrases(data: Path) -> Rows:
    rows = tsv(data / "sst2/train.tsv.gz")
    return [{"text": row[0], "label": f"is {row[1]}"} for row in rows]


def documents(data: Path) -> Rows:
    """Documents of CoNLL-2003 with their tags, of its training and its validation set."""
    rows: Rows = []
    for name in ("train", "valid"):
        with gzip.open(data / f"conll2003/{name}.txt.gz", "rt", encoding="utf-8") as file:
            parts = file.read().split("-DOCSTART-")[1:]
        rows += [{"document": "-DOCSTART-" + part.rstrip("\n") + "\n\n"} for part in parts]
    return rows


def grammar(data: Path) -> Rows:
    rows = tsv(data / "glue/CoLA/train.tsv.gz", header=False)
    return shuffled({"text": row[3], "label": f"is {row[1]}"} for row in rows)


def news(data: Path) -> Rows:
    rows = csv_rows(data / "ag_news/train.csv.gz")
    return shuffled({"text": row["text"], "label": f"topic {row['label']}"} for row in rows)


def likeness(data: Path) -> Rows:
    """How similar two sentences are, as a number."""
    rows = tsv(data / "glue/STS-B/train.tsv.gz")
    return shuffled({"first": row[7], "second": row[8], "label": float(row[9])} for row in rows)


def answers(data: Path, *, articles: int = 220, count: int = 6500) -> Rows:
    """A question and a sentence of its paragraph: does the sentence hold the answer?"""
    with gzip.open(data / "squad/train-v1.1.json.gz", "rt", encoding="utf-8") as file:
        chosen = json.load(file)["data"]
    rng = random.Random(5)
    rng.shuffle(chosen)
    rows = []
    for paragraph in (paragraph for article in chosen[:articles] for paragraph in article["paragraphs"]):
        text = paragraph["context"]
        places = [match.span() for match in re.finditer(r"[^.!?]+[.!?]*\s*", text) if len(match.group()) > 25]
        question = rng.choice(paragraph["qas"])
        start = question["answers"][0]["answer_start"]
        own = [place for place in places if place[0] <= start < place[1]]
        others = [place for place in places if place not in own]
        if own and len(places) > 2:
            first, last = own[0] if (holds := rng.random() < 0.5) else rng.choice(others)
            label = "is answer" if holds else "is other"
            rows.append({"first": question["question"].strip(), "second": text[first:last].strip(), "label": label})
    return shuffled(iter(rows), count)


def following(data: Path, *, count: int = 5500, words: int = 25) -> Rows:
    """Two passages of a novel: does the second follow the first?"""
    with lzma.open(data / "corpus/novels.txt.xz", "rt", encoding="utf-8") as file:
        novels = [document.split() for document in file.read().split("\n\n") if len(document) > 100_000]
    rng = random.Random(5)
    rows = []
    for _ in range(count):
        novel = rng.choice(novels)
        first, other = (rng.randrange(1000, len(novel) - 1000) for _ in range(2))
        second = first + words if (follows := rng.random() < 0.5) else other
        texts = [" ".join(novel[start : start + words]) for start in (first, second)]
        rows.append({"first": texts[0], "second": texts[1], "label": "is next" if follows else "is other"})
    return shuffled(iter(rows))


def same_sentiment(data: Path, *, count: int = 5500) -> Rows:
    """Two phrases: do both have the same sentiment? Their similarity says little about it."""
    phrases, rng = sentences(data), random.Random(5)
    rows = []
    for one, other in (rng.sample(phrases, 2) for _ in range(count)):
        label = "is same" if one["label"] == other["label"] else "is other"
        rows.append({"first": one["text"], "second": other["text"], "label": label})
    return shuffled(iter(rows))


SETS: dict[str, Callable[[Path], Rows]] = {
    "topics-20": lambda data: questions(data, topics=20, per_topic=300),
    "topics-77": lambda data: questions(data, topics=77, per_topic=150),
    "agnews": news,
    "sst2": sentences,
    "sst2-all": phrases,
    "conll": documents,
    "imdb": reviews,
    "imdb-150": short_reviews,
    "novels": novels,
    "cola": grammar,
    "rte": lambda data: pairs(data, "RTE", 1, 2, 3),
    "mrpc": lambda data: pairs(data, "MRPC", 3, 4, 0),
    "stsb": likeness,
    "qnli": answers,
    "next": following,
    "sentiment": same_sentiment,
}


if __name__ == "__main__":
    main()
