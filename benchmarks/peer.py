"""The same trainings with transformers' Trainer: its defaults, dynamic padding, the same records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from sets import DataSet, texts

from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, Record, TagRecord
from regard.tasks.task import Task


class Rows(torch.utils.data.Dataset):  # type: ignore[misc, type-arg]
    """Encoded rows; what a loader of the Trainer reads."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.rows[number]


class Clock(transformers.TrainerCallback):
    """Seconds and steps after a few steps of warming up."""

    def __init__(self, warm: int) -> None:
        self.warm, self.start, self.seconds, self.steps = warm, 0.0, 0.0, 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        if state.global_step == self.warm:
            self.start = now
        elif state.global_step > self.warm:
            self.seconds, self.steps = now - self.start, state.global_step - self.warm


def encode(records: Sequence[Record], tokenizer: Any, task: Task, max_length: int) -> list[dict[str, Any]]:
    """Rows as the example scripts of transformers make them: cut at `max_length`, questions in windows."""
    if isinstance(records[0], TagRecord):
        return [_tagged(record, tokenizer, task, max_length) for record in records if isinstance(record, TagRecord)]
    if isinstance(records[0], AnswerRecord):
        return _answered([record for record in records if isinstance(record, AnswerRecord)], tokenizer, max_length)
    both = [texts(record) for record in records]
    second = None if both[0][1] is None else [pair[1] for pair in both]
    encodings = tokenizer([pair[0] for pair in both], second, truncation=True, max_length=max_length)
    rows = []
    for number, record in enumerate(records):
        assert isinstance(record, ClassifyRecord | PairRecord)
        row = {name: encodings[name][number] for name in encodings}
        rows.append(row | {"labels": task.target(record)})  # type: ignore[attr-defined]
    return rows


def _tagged(record: TagRecord, tokenizer: Any, task: Task, max_length: int) -> dict[str, Any]:
    numbers = {name: number for number, name in enumerate(task.labels or ())}
    encodings = tokenizer(list(record.tokens), is_split_into_words=True, truncation=True, max_length=max_length)
    labels, before = [], None
    for word in encodings.word_ids():
        first = word is not None and word != before
        labels.append(numbers[record.tags[word]] if first and record.tags is not None else -100)
        before = word
    return {**encodings, "labels": labels}


def _answered(records: Sequence[AnswerRecord], tokenizer: Any, max_length: int) -> list[dict[str, Any]]:
    encodings = tokenizer(
        [record.question for record in records],
        [record.context for record in records],
        truncation="only_second",
        max_length=max_length,
        stride=128,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    rows = []
    for number, owner in enumerate(encodings["overflow_to_sample_mapping"]):
        answers = records[owner].answers
        assert answers
        start, end = answers[0].start, answers[0].start + len(answers[0].text)
        spans = [
            span if kind == 1 else None
            for span, kind in zip(encodings["offset_mapping"][number], encodings.sequence_ids(number), strict=True)
        ]
        inside = [position for position, span in enumerate(spans) if span is not None]
        first, last = 0, 0
        if inside and spans[inside[0]][0] <= start and spans[inside[-1]][1] >= end:  # type: ignore[index]
            first = max(position for position in inside if spans[position][0] <= start)  # type: ignore[index]
            last = min(position for position in inside if spans[position][1] >= end)  # type: ignore[index]
        row = {name: encodings[name][number] for name in ("input_ids", "token_type_ids", "attention_mask")}
        rows.append(row | {"start_positions": first, "end_positions": last})
    return rows


CLASSES = {
    "classify": transformers.AutoModelForSequenceClassification,
    "pair": transformers.AutoModelForSequenceClassification,
    "tag": transformers.AutoModelForTokenClassification,
    "answer": transformers.AutoModelForQuestionAnswering,
}


def train(
    data_set: DataSet,
    task: Task,
    records: Sequence[Record],
    start: Path,
    out: Path,
    *,
    seed: int = 0,
    steps: int = -1,
    warm: int = 20,
    workers: int = 4,
    every_row: bool = False,
    **options: Any,
) -> dict[str, float]:
    """Run the Trainer; seconds and real tokens a second. A short run encodes few rows if not `every_row`.

    `options` are further arguments of `TrainingArguments`.
    """
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(start)
    few = records if steps < 0 or every_row else records[: (steps + 4) * data_set.batch]
    rows = encode(few, tokenizer, task, data_set.max_length)
    settings: dict[str, Any] = {}
    if task.labels is not None:
        settings = {"num_labels": len(task.labels), "id2label": dict(enumerate(task.labels))}
        settings["label2id"] = {name: number for number, name in enumerate(task.labels)}
    elif task.problem_type == "regression":
        settings = {"num_labels": 1, "problem_type": "regression"}
    transformers.set_seed(seed)
    model = CLASSES[task.name].from_pretrained(start, dtype=torch.float32, **settings)
    gpu = torch.cuda.is_available()
    clock = Clock(warm)
    arguments = transformers.TrainingArguments(
        output_dir=str(out / "trainer"),
        per_device_train_batch_size=data_set.batch,
        num_train_epochs=data_set.epochs,
        max_steps=steps,
        learning_rate=data_set.lr,
        bf16=gpu,
        use_cpu=not gpu,
        optim="adamw_torch_fused",
        dataloader_num_workers=workers if gpu else 0,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_steps=10**9,
        seed=seed,
        **options,
    )
    collate = (
        transformers.DataCollatorForTokenClassification(tokenizer)
        if task.name == "tag"
        else transformers.DataCollatorWithPadding(tokenizer)
    )
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=Rows(rows), data_collator=collate, callbacks=[clock]
    )
    began = time.perf_counter()
    trainer.train()
    whole = time.perf_counter() - began
    mean = float(np.mean([len(row["input_ids"]) for row in rows]))
    if steps < 0:
        trainer.save_model(str(out / "model"))
        tokenizer.save_pretrained(str(out / "model"))
    total = int(np.ceil(len(rows) * len(records) / len(few) / data_set.batch) * data_set.epochs)
    each = clock.seconds / max(clock.steps, 1)
    return {
        "seconds": whole,
        "ms_per_step": 1e3 * each,
        "all_steps": total,
        "estimated_seconds": each * total,
        "tokens_per_second": mean * data_set.batch / each if each else 0.0,
    }
