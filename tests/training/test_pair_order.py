"""Text pairs in both orders: what an epoch reads, how it is decided, and what is refused."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sentence_encoder import write_sentence_encoder
from tests.training.helpers import Digest, stop_at
from tests.training.starting import start

import regard
from regard.checkpoint.reading import preprocessing_of
from regard.data.records import PairRecord
from regard.errors import InputError
from regard.metrics.confidence import Score
from regard.tasks.inference import ScoreResult
from regard.tasks.pair import Pair
from regard.training.defaults.explain import BY_USER
from regard.training.engine.loop import Stopped
from regard.training.inputs.preview import explain_defaults
from regard.training.pair_order import BothOrders, PairOrderScores, swapped

WORDS = ("warm", "cold", "old", "new", "red", "blue")
SETTINGS: dict[str, Any] = {"lr": 3e-3, "batch_size": 16, "device": "cpu", "head_init": "random", "seed": 1}
NOTE = "the order of the two texts does not matter"


def pairs(count: int, *, label: str, seed: int = 0) -> list[dict[str, str]]:
    """label: "same" for whether both texts begin with the same word, "first" for the first word of the first text."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        first = rng.choice(WORDS[:2])
        second = rng.choice(WORDS[:2])
        answer = first if label == "first" else str(first == second)
        texts = (f"{word} water {rng.randrange(40)}" for word in (first, second))
        rows.append({**dict(zip(("first", "second"), texts, strict=True)), "label": answer})
    return rows


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder") / "model"
    return write_sentence_encoder(
        folder, [f"{one} {other} water {number}" for one in WORDS for other in WORDS for number in range(40)]
    )


def train(encoder: Path, out: Path, rows: list[dict[str, str]], **settings: Any) -> list[str]:
    """The notes of the training."""
    events: list[Any] = []
    options = {**SETTINGS, "progress": events.append, **settings}
    regard.train(rows, out=out, start=encoder, **options)
    return [event.values["text"] for event in events if event.kind == "note"]


def run_json(folder: Path) -> dict[str, Any]:
    run: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return run


@pytest.mark.parametrize("window", [None, 12])
def test_two_epochs_read_every_pair_in_both_orders(encoder: Path, window: int | None) -> None:
    """window: with one of 12 tokens, some pairs have several sequences."""
    records = [
        PairRecord(f"{one} water", f"{other} {'old ' * (number % 12)}water", label="yes" if number % 2 else "no")
        for number, (one, other) in enumerate((one, other) for one in WORDS for other in WORDS)
    ]
    task, model = Pair(names=("no", "yes")), start(Pair(names=("no", "yes")), start=encoder)
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer, window=window, overlap=0.0)
    given = task.examples(records, preprocessing, labeled=True)
    both = BothOrders.of(given, task, records, preprocessing, seed=3)
    epochs = [both.epoch(number) for number in range(4)]
    numbers = [both.examples.owners[epoch.rows] for epoch in epochs]
    for owners in numbers:
        assert sorted({number % len(records) for number in owners.tolist()}) == list(range(len(records)))
        assert 0.2 < np.mean(owners >= len(records)) < 0.8
    assert sorted(np.concatenate(numbers[:2]).tolist()) == sorted(both.examples.owners.tolist())
    assert not np.array_equal(numbers[0], numbers[1])
    assert np.array_equal(numbers[0], numbers[2])
    turned = task.examples(swapped(records), preprocessing, labeled=True)
    everything = both.examples.take(range(len(given) + len(turned)))
    assert everything.tokens.ids.tolist() == [*given.ids.tolist(), *turned.ids.tolist()]
    assert everything["label"].tolist() == [*given.by_sequence["label"], *turned.by_sequence["label"]]
    assert both.max_tokens == max(given.max_length, turned.max_length)


def test_swapped_records_have_the_same_labels() -> None:
    assert swapped([PairRecord("a", "b", label="yes")]) == [PairRecord("b", "a", label="yes")]


@pytest.mark.parametrize(("original", "turned", "close"), [(0.8, 0.8, True), (0.8, 0.77, True), (0.8, 0.75, False)])
def test_the_order_does_not_matter_if_the_scores_are_close(original: float, turned: float, close: bool) -> None:
    assert PairOrderScores("accuracy", original, turned).are_close == close


@pytest.mark.parametrize(("rows", "limit"), [(60, 0.059), (400, 0.04)])
def test_few_validation_rows_may_differ_more(rows: int, limit: float) -> None:
    """60 rows have a standard error of about 6 points."""
    meter: Any = None
    error = (0.7 * 0.3 / rows) ** 0.5
    score = Score(0.7, 0.7 - 1.96 * error, 0.7 + 1.96 * error)
    result = ScoreResult(rows, {"accuracy": score}, "accuracy", 0.5, 1.0, meter)
    assert PairOrderScores.of(0.74, result).limit == pytest.approx(limit, abs=1e-3)


def test_both_orders_are_read_if_the_order_does_not_matter(encoder: Path, tmp_path: Path) -> None:
    notes = train(encoder, tmp_path / "run", pairs(200, label="same"), repeats=2, epochs=6)
    found = run_json(tmp_path / "run")["pair_order"]
    assert found["both_orders"]
    assert found["original"] - found["swapped"] <= 0.04
    assert notes[0].startswith(NOTE)
    assert f"validation accuracy {found['original']:.4g}, with swapped texts {found['swapped']:.4g}" in notes[0]
    card = (tmp_path / "run/README.md").read_text()
    assert ", with text pairs in both orders in all trainings but the first" in card
    page = (tmp_path / "run/report.html").read_text()
    assert f"both orders after the first training (accuracy {found['original']:.3f}, with swapped texts" in page
    train(encoder, tmp_path / "given", pairs(200, label="same"), repeats=2, epochs=6, both_orders="no")
    assert "pair_order" not in run_json(tmp_path / "given")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "given")]
    assert weights[0] != weights[1]


def test_the_order_is_as_given_if_it_matters(encoder: Path, tmp_path: Path, digest: Digest) -> None:
    rows = pairs(200, label="first")
    notes = train(encoder, tmp_path / "run", rows, repeats=2, epochs=6)
    found = run_json(tmp_path / "run")["pair_order"]
    assert not found["both_orders"]
    assert found["original"] > 0.9 > 0.7 > found["swapped"]
    assert notes[0].startswith("the order of the two texts matters (validation accuracy")
    assert "both orders" not in (tmp_path / "run/README.md").read_text()
    assert f"as it is (accuracy {found['original']:.3f}, with" in (tmp_path / "run/report.html").read_text()
    train(encoder, tmp_path / "given", rows, repeats=2, epochs=6, both_orders="no")
    assert digest(tmp_path / "run") == digest(tmp_path / "given")


def test_one_training_reads_both_orders_on_request(encoder: Path, tmp_path: Path) -> None:
    """The label is the first word of the first text: in both orders, this cannot be learned."""
    rows = [row for row in pairs(300, label="first") if row["first"].split()[0] != row["second"].split()[0]]
    scores = []
    for both_orders in ("yes", "no"):
        notes = train(encoder, tmp_path / both_orders, rows, epochs=6, both_orders=both_orders)
        assert not any(note.startswith(NOTE) for note in notes)
        scores.append(regard.evaluate(tmp_path / both_orders, rows).scores["accuracy"].value)
    assert scores[0] < 0.7 < 0.95 < scores[1]


def test_a_training_on_all_rows_reads_both_orders_too(encoder: Path, tmp_path: Path) -> None:
    notes = train(encoder, tmp_path / "run", pairs(120, label="same"), repeats=2, epochs=1, refit="yes")
    assert [note.startswith(NOTE) for note in notes].count(True) == 2


def test_a_run_that_is_stopped_in_its_second_training_goes_on(encoder: Path, tmp_path: Path, digest: Digest) -> None:
    rows = pairs(120, label="same")
    options: dict[str, Any] = {"repeats": 2, "epochs": 2, "log_every": 1}
    assert train(encoder, tmp_path / "whole", rows, **options)[0].startswith(NOTE)
    stop, trainings = stop_at(4), 1

    def progress(event: Any) -> None:
        nonlocal trainings
        trainings += bool(event.values.get("repeat"))
        if trainings == 2:
            stop(event)

    with pytest.raises(Stopped):
        train(encoder, tmp_path / "run", rows, **options, progress=progress)
    assert train(encoder, tmp_path / "run", rows, **options, resume=True)[0].startswith(NOTE)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"explainable": True}, r"both_orders='yes' was given, but it cannot be combined with explainable"),
        ({"class_balance": "sampling"}, r"cannot be combined with class_balance='sampling'. Leave one"),
    ],
)
def test_what_cannot_be_combined_is_refused(
    encoder: Path, tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        train(encoder, tmp_path / "run", pairs(40, label="same"), both_orders="yes", **settings)


def test_single_texts_have_no_order(encoder: Path, tmp_path: Path) -> None:
    rows = [{"text": f"{word} water {number}", "label": word} for word in WORDS[:2] for number in range(20)]
    with pytest.raises(InputError, match=r"the task is classify; only pairs of texts have an order"):
        train(encoder, tmp_path / "run", rows, both_orders="yes")


@pytest.mark.parametrize(
    ("settings", "value", "reason"),
    [
        ({"repeats": 2}, "auto", "if the first training is as good on validation rows with swapped texts"),
        ({}, "no", "with one training, it is not known whether the order"),
        ({"repeats": 2, "dev_fraction": 0.0}, "no", "without validation rows, it is not known whether the order"),
        ({"repeats": 2, "explainable": True}, "no", "another setting needs each pair as it is"),
        ({"both_orders": "yes"}, "yes", BY_USER),
    ],
)
def test_the_defaults_are_explained(encoder: Path, settings: dict[str, Any], value: str, reason: str) -> None:
    explained = explain_defaults(pairs(40, label="same"), start=encoder, **SETTINGS, **settings)
    found = next(one for one in explained if one.name == "both_orders")
    assert found.value == value
    assert reason in found.reason


def test_a_stop_before_the_first_step_says_that_nothing_is_saved(encoder: Path, tmp_path: Path) -> None:
    def stop(event: Any) -> None:
        if event.kind == "fit":
            raise KeyboardInterrupt

    with pytest.raises(
        Stopped, match=r"before the first training step; nothing is saved yet\. Start it again"
    ) as caught:
        train(encoder, tmp_path / "run", pairs(40, label="same"), head_init="similarity", progress=stop)
    assert caught.value.signal == signal.SIGINT
