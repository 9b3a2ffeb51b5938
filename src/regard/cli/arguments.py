"""Arguments that several commands share, and the texts given on the command line or in a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from regard.cli.output import UsageError

# Names in help lines. They are written here because their registries take long to import; a test compares them.
TRAIN_TASKS = ("classify", "pair", "tag", "answer", "translate", "embed", "masked", "causal", "bidirectional")
CHECK_TASKS = (*TRAIN_TASKS, "text", "minimal")
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "conll", "text", "lines", "aligned")
FILE_NAME = re.compile(r"\S+\.(csv|tsv|jsonl?|parquet|conll|txt)(\.(gz|xz|zst|bz2))?")  # such a text is meant as a file
INPUT_ROLES = ("text", "first", "second", "question", "context")  # columns of inputs without labels
ROLES = (
    *("text", "label", "first", "second", "question", "context", "answers", "source", "target"),
    *("tokens", "tags", "entities", "document", "group"),
)

# A command can replace a help line: Annotated[ModelName, arg(help="…")].
ModelName = Annotated[
    Positional[str],
    arg(help='Model: a folder, "minilm", a published name such as bert-base-uncased, or a hub id.', metavar="MODEL"),
]
Texts = Annotated[
    Positional[tuple[str, ...]], arg(help="Texts to process.", metavar="[TEXT ...]", help_behavior_hint="")
]
Input = Annotated[
    str | None,
    arg(
        help="File with the texts, instead of TEXT: one per line, or CSV, TSV, JSONL or Parquet; - is stdin.",
        metavar="FILE",
    ),
]
TextColumn = Annotated[
    str | None, arg(help="Column of --input with the texts; recognized by its name if not given.", metavar="text=NAME")
]
FileFormat = Annotated[
    str | None, arg(help=f"File format: {', '.join(FORMATS)}; recognized if not given.", metavar="NAME")
]
Columns = Annotated[
    str | None,
    arg(
        help="Columns by role: text=review,label=stars; one-hot labels: label=a,b,c. Recognized by name if not given. "
        f"Roles: {', '.join(ROLES)}.",
        metavar="ROLE=NAME,...",
    ),
]
Labels = Annotated[
    str | None,
    arg(
        help="Kind of the labels: single, multi (lists, or separated by , ; or |), number, or class (never split, even "
        "if it contains , ; or |). Recognized from the data if not given.",
        metavar="KIND",
    ),
]
Encoding = Annotated[
    str | None,
    arg(help="Encoding of the files, such as cp1252 or utf-16; detected if not given, usually UTF-8.", metavar="NAME"),
]
SkipBad = Annotated[
    Path | None, arg(help="Skip invalid rows and write them to this file as JSON lines.", metavar="FILE")
]
Answers = Annotated[
    Path | None,
    arg(
        help="Write the predictions to this file, in order: .csv, .tsv, .parquet, or JSON lines for any other name.",
        metavar="FILE",
    ),
]
LiteralTexts = Annotated[bool, arg(help="Use every TEXT as it is, even if a file has that name.")]
Abstain = Annotated[
    float | None,
    arg(
        help="Confidence from 0 to 1 below which an answer counts as abstained; none if not given.",
        metavar="CONFIDENCE",
    ),
]
BatchTokens = Annotated[int, arg(help="Tokens per batch.")]
Device = Annotated[str, arg(help="Device: auto (a GPU if there is one), cpu, cuda or cuda:1.", metavar="DEVICE")]
Dtype = Annotated[Literal["fp32", "bf16", "fp16"], arg(help="Number format of the weights and activations.")]
Engine = Annotated[
    Literal["auto", "torch", "int8"],
    arg(
        help="What computes: torch, int8 (8-bit integers on the CPU), or auto: torch, unless regard compress recorded "
        "another one."
    ),
]
Ray = Annotated[
    bool,
    arg(
        help="Run on a Ray cluster: the one of RAY_ADDRESS, else one on this machine. --output is a folder with a file "
        "of JSON lines for every --shard-rows rows; the same command continues a run that was stopped."
    ),
]
RayWorkers = Annotated[int, arg(help="Processes of --ray; 0 is one per two processors of the cluster.")]
ShardRows = Annotated[int, arg(help="Rows of a file of --ray.")]
Resume = Annotated[bool, arg(help="Continue a stopped run from the last checkpoint in --out.")]
Overwrite = Annotated[bool, arg(help="Write to --out even if it is not empty.")]
Json = Annotated[bool, arg(help="Print JSON instead of text.")]


def check_texts(
    texts: tuple[str, ...],
    input: str | None,
    columns: str | None,
    encoding: str | None = None,
    format: str | None = None,
) -> None:
    """Raise UsageError unless texts or a file are given, one of the two."""
    if texts and input is not None:
        raise UsageError("TEXT and --input were both given; give one of them.")
    if not texts and input is None:
        raise UsageError('no text was given. Write it after the model ("a text"), or use --input FILE.')
    if columns is not None and input is None:
        raise UsageError("--columns was given without --input; it names columns of a file.")
    if encoding is not None and input is None:
        raise UsageError("--encoding was given without --input; it is the encoding of a file.")
    if format is not None and input is None:
        raise UsageError("--format was given without --input; it is the format of a file.")


def check_output(
    path: Path | None,
    flag: str,
    *,
    inputs: Sequence[str | Path | None] = (),
    model: str | None = None,
    others: Mapping[str, Path | None] | None = None,
) -> None:
    """Check that a file can be written before anything is read; it must not be one of the inputs."""
    if path is None:
        return
    from regard.checkpoint.files import model_files
    from regard.data.atomic import check_output_path

    own = [] if model is None else model_files(Path(model))
    check_output_path(path, flag, inputs=[*inputs, *own], others=others)


def check_not_files(texts: Sequence[str], literal: bool, advice: str, *, metavar: str = "TEXT") -> None:
    """Raise UsageError for a text that is the name of a file: most likely its content was meant."""
    name = None if literal else next((text for text in texts if _is_file(text)), None)
    if name is not None:
        shown = name if len(name) <= 100 else f"{name[:100]}…"
        raise UsageError(
            f'"{shown}" is a file, but {metavar} is the text itself. {advice.format(name=shown)} '
            "If this is the text, add --literal."
        )
    missing = None if literal else next((text for text in texts if FILE_NAME.fullmatch(text)), None)
    if missing is not None:
        raise UsageError(f'"{missing}" does not exist. If this is the text, not a file, add --literal.')


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a file name
        return False


def read_texts(
    name: str, columns: str | None = None, encoding: str | None = None, format: str | None = None
) -> list[str]:
    """The texts of a file: the text column of a table, else one text per line; `-` is stdin."""
    from regard.data.readers import Reader
    from regard.data.records import DocumentRecord
    from regard.data.schema.columns import parse_columns
    from regard.data.schema.options import read_options
    from regard.data.sources.locate import find_sources
    from regard.predict.batch.rows import is_plain, warn_of_table

    sources = find_sources(name)
    if format is None and is_plain(name, columns):
        warn_of_table(sources, encoding=encoding)
    column_roles = {} if columns is None else parse_columns(columns)
    format = "lines" if is_plain(name, columns, format) else format
    reader = Reader(sources, read_options(task="text", format=format, columns=column_roles, encoding=encoding))
    texts = []
    for record in reader:
        assert isinstance(record, DocumentRecord)
        if not record.text.strip():
            raise record.place.error("holds an empty text", fix="Remove the line, or give it words.")
        texts.append(record.text)
    return texts


def check_ray(*, output: Path | None, file: str | None) -> None:
    """Raise UsageError unless --ray has an input and a folder for its output."""
    if output is None or output.suffix:
        raise UsageError(
            f"--ray writes a folder; --output is {output}. Give a name without an ending, such as answers."
        )
    if file is None:
        raise UsageError("--ray is for many texts. Give them as --input FILE.")


def check_data_exists(*data: str | None) -> None:
    """Raise an error for data that cannot be found, before torch is imported, which takes seconds."""
    from regard.data.sources.locate import find_sources

    for where in data:
        if where is not None:
            find_sources(where)
