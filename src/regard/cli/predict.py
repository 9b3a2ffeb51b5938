"""`regard predict`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from regard.cli.arguments import (
    Answers,
    BatchTokens,
    Device,
    Dtype,
    Encoding,
    Input,
    Json,
    ModelName,
    Texts,
    check_output,
    check_texts,
    is_plain,
)
from regard.cli.shared import UsageError, print_json, print_said, progress_rows, short

if TYPE_CHECKING:
    from regard.predict import Model

ABOUT = """What a trained model says of texts.

Examples:
  regard predict runs/reviews "a great film" "two dull hours"
  regard predict runs/reviews --input texts.txt --output answers.jsonl
  regard predict runs/reviews --input new.csv --columns text=opinion --json
  regard predict runs/same "a text" "another text"       a model for pairs takes texts two by two
  regard predict runs/reader "a question" "a context"    and so does one that answers questions
  cat texts.txt | regard predict runs/reviews --input - --json"""


PAIRED = ("pair", "answer", "embed")  # tasks that take two texts


@dataclass(frozen=True)
class Predict:
    model: ModelName
    texts: Texts = ()
    input: Input = None
    columns: Annotated[
        str | None, arg(help="Which column of --input is what: text=opinion.", metavar="ROLE=NAME,...")
    ] = None
    encoding: Encoding = None
    output: Answers = None
    batch_tokens: BatchTokens = 8192
    device: Device = "auto"
    dtype: Dtype = "fp32"
    json: Json = False


def run(verb: Predict) -> None:
    check_texts(verb.texts, verb.input, verb.columns, verb.encoding)
    check_output(verb.output, "--output", inputs=(verb.input,), model=verb.model)
    from regard.data.whole import is_stream, whole_file
    from regard.predict import load

    model = load(verb.model, device=verb.device, dtype=verb.dtype)
    given = _given(verb, model)
    if verb.output is not None:
        rows = 0
        with whole_file(verb.output) as file, progress_rows("answers") as tell:
            for rows, answer in enumerate(model.answers(given, batch_tokens=verb.batch_tokens), 1):
                file.write(json.dumps(answer.json(), ensure_ascii=False) + "\n")
                tell(rows)
        done = {"rows": rows, "output": str(verb.output)}
        if not verb.json:
            print_said(f"{rows:,} answers: {verb.output}")
        elif is_stream(verb.output):  # which may be stdout, where the answers are
            print_said(json.dumps(done))
        else:
            print_json(done)
        return
    kept: list[Any] = []
    for answer in model.answers(_noted(given, kept), batch_tokens=verb.batch_tokens):
        item = kept.pop(0)
        if verb.json:
            print_json(answer.json())
        else:
            print(f"{shown(answer.json())}  {short(_text(item), 70)}")


def _given(verb: Predict, model: Model) -> Iterable[Any]:
    task = model.task
    if verb.input is not None:
        return read_inputs(verb.input, task, verb.columns, verb.encoding)
    if task not in PAIRED:
        return verb.texts
    if len(verb.texts) % 2:
        what = "a question and its context" if task == "answer" else "two texts that belong together"
        raise UsageError(f"this model takes {what}, but the last of {len(verb.texts)} texts stands alone.")
    return list(zip(verb.texts[::2], verb.texts[1::2], strict=True))


def read_inputs(name: str, task: str | None, columns: str | None = None, encoding: str | None = None) -> Iterator[Any]:
    """What a file holds for a task, row by row: labels in it are not looked at."""
    from regard.data.names import parse_columns
    from regard.data.readers import read
    from regard.errors import DataError

    told: dict[str, Any] = {"columns": {} if columns is None else parse_columns(columns), "encoding": encoding}
    if task in PAIRED:
        return iter(read(name, task=task, labels=None if task == "answer" else "class", **told))
    if is_plain(name, columns) and not (task == "tag" and _tagged(name, encoding)):
        return iter(read(name, task="text", format="lines", encoding=encoding))
    if task == "tag":
        try:
            tagged = read(name, task="tag", **told)
            if not tagged.recognised.layout:  # of an annotation tool every text is wanted, accepted or not
                return iter(tagged)
        except DataError:  # no words and tags; a text will do
            pass
    return iter(read(name, task="text", **told))


def _tagged(name: str, encoding: str | None) -> bool:
    """Whether a file that is no table holds words with their tags, a word a line."""
    from regard.data.readers import read
    from regard.errors import DataError

    try:
        return name != "-" and read(name, encoding=encoding).recognised.format == "conll"
    except DataError:
        return False


def _noted(given: Iterable[Any], kept: list[Any]) -> Iterator[Any]:
    """The same, and a note of each until its answer comes."""
    for item in given:
        kept.append(item)
        yield item


def _text(item: Any) -> str:
    if isinstance(item, tuple):
        return " | ".join(item)
    names = ("question", "first", "text")
    return item if isinstance(item, str) else str(next(getattr(item, name) for name in names if hasattr(item, name)))


def shown(answer: dict[str, Any]) -> str:
    """An answer in a line, for reading."""
    if "label" in answer:
        return f"{answer['label']:<16} {answer['score']:.3f}"
    if "labels" in answer:
        labels = [f"{name} {answer['scores'][name]:.2f}" for name in answer["labels"]]
        return f"{', '.join(labels) or '(none)':<32}"
    if "value" in answer:
        return f"{answer['value']:>9.4f}"
    if "entities" in answer:
        return ", ".join(f"{one['text']} ({one['label']} {one['score']:.2f})" for one in answer["entities"]) or "(none)"
    if "words" in answer:
        return " ".join(f"{one['text']}/{one['label']}" for one in answer["words"])
    if "answer" in answer:
        return f"{answer['answer'] or '(no answer)'}  {answer['score']:.3f}"
    if "translation" in answer:
        return f"{answer['translation'] or '(nothing)'}  {answer['score']:.3f}"
    return json.dumps(answer, ensure_ascii=False)
