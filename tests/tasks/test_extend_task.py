"""A new task is one class: defined here, registered, and used by every part of the library that knows tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from torch.nn import functional as F

import regard
from regard import cli
from regard.data.batching.examples import Examples, ExamplesBuilder, Inputs
from regard.data.batching.framing import Frame, single_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.check.run import check
from regard.data.records import ClassifyRecord, Record
from regard.metrics.meter import LabelMeter, Meter
from regard.model.transformer import Output
from regard.tasks import TASKS, register, tasks_table
from regard.tasks.task import Answer, Loss, Task

NAMES = ("no", "yes")


@dataclass(frozen=True, repr=False)
class YesNoAnswer(Answer):
    """The probability of "yes"."""

    yes: float = 0.0

    def display(self) -> str:
        return f"{self.yes:.0%} yes"


@dataclass(frozen=True)
class YesNo(Task):
    """Whether the answer to a text is yes."""

    name: ClassVar[str] = "yes-no"
    title: ClassVar[str] = "yes-or-no model"
    record: ClassVar[type[Any]] = ClassifyRecord
    pipeline_tag: ClassVar[str] = "text-classification"
    example_call: ClassVar[str] = 'predict(["is it so?"])'
    command_example: ClassVar[str] = '"is it so?"'
    in_transformers: ClassVar[bool] = False

    @classmethod
    def from_records(cls, records: Iterable[Record], **_: Any) -> Self:
        return cls()

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        return cls()

    @property
    def heads(self) -> dict[str, int]:
        return {"sequence": 2}

    @property
    def labels(self) -> tuple[str, ...]:
        return NAMES

    def examples(self, records: Sequence[Record], preprocessing: Preprocessing, *, labeled: bool) -> Examples:
        builder = ExamplesBuilder(segments=preprocessing.segments)
        texts = [record.text for record in records if isinstance(record, ClassifyRecord)]
        labels = [record.label for record in records if isinstance(record, ClassifyRecord)]
        frame = Frame.of(preprocessing.tokenizer)
        for row, ids in enumerate(preprocessing.tokenizer.ids_batch(texts, special=False)):
            target = {"yes": np.int64(labels[row] == "yes")} if labeled else {}
            for window in single_windows(frame, ids, max_tokens=preprocessing.max_tokens, overlap=0.0):
                builder.add(row, window.ids, window.segments, by_sequence=target)
        return builder.build()

    def loss(self, output: Output, inputs: Inputs) -> Loss:
        assert output.logits is not None
        losses_B = F.cross_entropy(output.logits, inputs["yes"], reduction="none")
        return Loss(losses_B.sum(), losses_B.new_tensor(float(len(losses_B))))

    def row_outputs(self, output: Output, inputs: Inputs) -> list[Any]:
        assert output.logits is not None
        yes: list[Any] = output.logits[: inputs.rows].softmax(1)[:, 1].tolist()
        return yes

    def answer(self, record: Record, outputs: Sequence[Any]) -> Answer:
        return YesNoAnswer(len(outputs), yes=sum(outputs) / len(outputs))

    def meter(self) -> Meter:
        return LabelMeter(NAMES)

    def update(self, meter: Meter, answer: Answer, record: Record) -> None:
        assert isinstance(answer, YesNoAnswer)
        assert isinstance(record, ClassifyRecord)
        meter.add(NAMES[answer.yes > 0.5], record.label)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(YesNo)
    yield
    del TASKS[YesNo.name]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "questions.csv"
    lines = [f"is it {number}?,{NAMES[number % 2]}" for number in range(40)]
    path.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    return path


def test_a_new_task_is_trained_evaluated_and_used(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = {"preset": "tiny-bert", "device": "cpu", "steps": 2, "batch_tokens": 256}
    result = regard.train(data, out=tmp_path / "run", task="yes-no", **settings)
    assert (result.task, next(iter(result.scores))) == ("yes-no", "accuracy")
    evaluation = regard.evaluate(tmp_path / "run", data)
    assert evaluation.rows == 40
    assert evaluation.data.startswith("csv for yes-no (text=text, label=label): ")

    answer = regard.load(tmp_path / "run", device="cpu").predict(["is it 3?"])[0]
    assert isinstance(answer, YesNoAnswer)
    assert cli.main(["predict", str(tmp_path / "run"), "is it 3?", "--device", "cpu"]) == 0
    assert answer.display() in capsys.readouterr().out

    card = (tmp_path / "run/README.md").read_text(encoding="utf-8")
    assert "transformers cannot open this folder: it has no class for this task (yes-or-no model)." in card
    assert "# BERT yes-or-no model, trained from scratch (tiny-bert)" in card
    assert "pipeline_tag: text-classification" in card
    assert 'model.predict(["is it so?"])' in card


def test_the_command_line_names_the_next_command(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--task", "yes-no", "--preset", "tiny-bert", "--device", "cpu", "--steps", "1", "--batch-tokens", "256"]
    assert cli.main(["train", str(data), "--out", str(tmp_path / "run"), *flags]) == 0
    printed = capsys.readouterr()
    assert "data: csv for yes-no (text=text, label=label): " in printed.err
    assert f'regard predict {tmp_path / "run"} "is it so?"' in printed.out


def test_the_data_check_knows_a_new_task(data: Path) -> None:
    report = check(data, task="yes-no")
    assert report.rows == 40
    assert report.complete
    assert report.task == "yes-no"
    assert report.format.startswith("csv for yes-no (")


def test_the_table_of_tasks_lists_it() -> None:
    assert ("yes-no", "yes-or-no model", "text", "predict") in tasks_table()


def test_the_docs_list_every_task() -> None:
    page = (Path(__file__).parents[2] / "docs/train.md").read_text(encoding="utf-8")
    for name, title, roles, command in tasks_table():
        if name != YesNo.name:
            assert f"| `{name}` | {title} | {roles} | `regard {command}` |" in page
