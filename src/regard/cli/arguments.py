"""Arguments that several commands take, said once; and the texts that are given to them, themselves or in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from regard.cli.output import UsageError
from regard.errors import InputError

ModelName = Annotated[
    Positional[str], arg(help='A model folder, "minilm", a published name such as gpt2, or a hub id.', metavar="MODEL")
]
Texts = Annotated[
    Positional[tuple[str, ...]], arg(help="The texts themselves.", metavar="[TEXT ...]", help_behavior_hint="")
]
Input = Annotated[
    str | None, arg(help="A file instead: a text a line, or CSV, TSV, JSONL or Parquet; - is stdin.", metavar="FILE")
]
TextColumn = Annotated[
    str | None, arg(help="Which column of --input holds the texts, if not its usual name.", metavar="text=NAME")
]
Columns = Annotated[
    str | None,
    arg(help="Which column is what: text=review,label=stars; one-hot labels: label=a,b,c.", metavar="ROLE=NAME,..."),
]
Labels = Annotated[
    str | None,
    arg(
        help="What labels are: single, multi (lists, or separated by | ; or a comma), number, or class (one name, "
        "whatever is in it); read from the data if not given.",
        metavar="KIND",
    ),
]
Encoding = Annotated[
    str | None,
    arg(help="Encoding of the files, such as cp1252 or utf-16; UTF-8 unless their bytes show another.", metavar="NAME"),
]
SkipBad = Annotated[
    Path | None, arg(help="Write rows that cannot be used there, as JSON lines, and go on.", metavar="FILE")
]
Answers = Annotated[
    Path | None,
    arg(help="Write the answers there, in order: .csv, .tsv or .parquet by the name, else JSON lines.", metavar="FILE"),
]
LiteralTexts = Annotated[bool, arg(help="Take every TEXT as it is, also where a file has that name.")]
BatchTokens = Annotated[int, arg(help="How many tokens go through the network at once.")]
Device = Annotated[str, arg(help="auto, cpu, cuda or cuda:1.", metavar="DEVICE")]
Dtype = Annotated[Literal["fp32", "bf16", "fp16"], arg(help="Number format of the network.")]
Resume = Annotated[bool, arg(help="Go on from the state saved in --out.")]
Overwrite = Annotated[bool, arg(help="Begin again in a folder that holds something already.")]
Json = Annotated[bool, arg(help="Print JSON instead of a table.")]


def check_texts(texts: tuple[str, ...], input: str | None, columns: str | None, encoding: str | None = None) -> None:
    """Texts or a file of them, one of the two."""
    if texts and input is not None:
        raise UsageError("texts were given and --input too; give one of them.")
    if not texts and input is None:
        raise UsageError('no text was given. Write it after the model ("a text"), or use --input FILE.')
    if columns is not None and input is None:
        raise UsageError("--columns was given without --input; it names a column of a file.")
    if encoding is not None and input is None:
        raise UsageError("--encoding was given without --input; it is that of a file.")


def check_output(
    path: Path | None,
    flag: str,
    *,
    inputs: Sequence[str | Path | None] = (),
    model: str | None = None,
    others: Mapping[str, Path | None] | None = None,
) -> None:
    """Whether a file can be written there, before anything is read: it must not be one of those that are read."""
    if path is None:
        return
    from regard.checkpoint.files import model_files
    from regard.data.atomic import check_output_path

    own = [] if model is None else model_files(Path(model))
    check_output_path(path, flag, inputs=[*inputs, *own], others=others)


def check_not_files(texts: Sequence[str], literal: bool, advice: str) -> None:
    """A text that is the name of a file is asked about: most likely what the file holds was meant."""
    name = None if literal else next((text for text in texts if _is_file(text)), None)
    if name is not None:
        shown = name if len(name) <= 100 else f"{name[:100]}…"
        raise UsageError(
            f'"{shown}" is a file, but a TEXT is taken as it is, not read from a file. {advice.format(name=shown)} '
            "If these words are the text, add --literal."
        )


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name
        return False


def read_texts(name: str, columns: str | None = None, encoding: str | None = None) -> list[str]:
    """The texts of a file: the text column of a table, else a text a line; `-` is stdin."""
    from regard.data.columns import parse_columns
    from regard.data.readers import read
    from regard.data.records import DocumentRecord
    from regard.predict.batch.rows import is_plain

    told = {} if columns is None else parse_columns(columns)
    format = "lines" if is_plain(name, columns) else None
    reader = read(name, task="text", format=format, columns=told, encoding=encoding)
    if told and reader.schema.format == "text":
        raise InputError(f"--columns was given, but {name} is plain text and has none. Leave --columns out.")
    texts = []
    for record in reader:
        assert isinstance(record, DocumentRecord)
        if not record.text.strip():
            raise record.place.error("holds an empty text", fix="Remove the line, or give it words.")
        texts.append(record.text)
    return texts
