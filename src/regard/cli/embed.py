"""`regard embed`."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from regard.cli.shared import Json, ModelName, UsageError, print_json, print_table, progress_bar, short
from regard.errors import InputError

if TYPE_CHECKING:
    import numpy as np

ABOUT = """Vectors of texts, from any layer.

Examples:
  regard embed minilm "a text" "another text"
  regard embed minilm --input texts.txt --output vectors.npy
  regard embed minilm --input rows.jsonl --layer 3 --pool first --json
  regard embed minilm --input reviews.csv --columns text=opinion --output vectors.npy
  cat texts.txt | regard embed minilm --input - --pool none --output tokens.npz"""


@dataclass(frozen=True)
class Embed:
    model: ModelName
    texts: Annotated[
        Positional[tuple[str, ...]], arg(help="The texts themselves.", metavar="[TEXT ...]", help_behavior_hint="")
    ] = ()
    input: Annotated[
        str | None,
        arg(help="A file instead: a text a line, or CSV, TSV, JSONL or Parquet; - is stdin.", metavar="FILE"),
    ] = None
    columns: Annotated[
        str | None, arg(help="Which column of --input holds the texts, if not its usual name.", metavar="text=NAME")
    ] = None
    output: Annotated[
        Path | None,
        arg(help="Write the vectors there: .npy, or .npz (one array a text) with --pool none.", metavar="FILE"),
    ] = None
    layer: Annotated[int, arg(help="Which layer: -1 the last, 0 the embeddings, 1 the first block.")] = -1
    pool: Annotated[
        Literal["auto", "mean", "first", "max", "none"],
        arg(help="How tokens become one vector; auto is the model's own way, none keeps one vector a token."),
    ] = "auto"
    normalise: Annotated[bool, arg(help="Scale every vector to length 1.")] = False
    batch_tokens: Annotated[int, arg(help="How many tokens go through the network at once.")] = 8192
    device: Annotated[str, arg(help="auto, cpu, cuda or cuda:1.", metavar="DEVICE")] = "auto"
    dtype: Annotated[Literal["fp32", "bf16", "fp16"], arg(help="Number format of the network.")] = "fp32"
    json: Json = False


def run(verb: Embed) -> None:
    if verb.texts and verb.input is not None:
        raise UsageError("texts were given and --input too; give one of them.")
    if not verb.texts and verb.input is None:
        raise UsageError('no text was given. Write it after the model ("a text"), or use --input FILE.')
    if verb.columns is not None and verb.input is None:
        raise UsageError("--columns was given without --input; it names a column of a file.")
    if verb.output is not None:
        _check_output(verb.output, per_token=verb.pool == "none")
    texts = list(verb.texts) if verb.input is None else read_texts(verb.input, verb.columns)

    from regard.predict import load

    model = load(verb.model, device=verb.device, dtype=verb.dtype)
    with progress_bar("texts") as progress:
        vectors = model.embed(
            texts,
            layer=verb.layer,
            pool=None if verb.pool == "none" else verb.pool,
            normalise=verb.normalise,
            batch_tokens=verb.batch_tokens,
            progress=progress,
        )
    if verb.output is not None:
        _write_arrays(verb.output, vectors)
        said: dict[str, Any] = {"texts": len(texts), "width": int(vectors[0].shape[-1]), "output": str(verb.output)}
        print_json(said) if verb.json else print(f"{len(texts)} texts, {said['width']} numbers each: {verb.output}")
    elif verb.json:
        name = "vectors" if verb.pool == "none" else "vector"
        for text, vector in zip(texts, vectors, strict=True):
            print_json({"text": text, name: vector.tolist()})
    else:
        print_table([(short(text), _numbers(vector)) for text, vector in zip(texts, vectors, strict=True)])


def read_texts(name: str, columns: str | None = None) -> list[str]:
    """The texts of a file: the text column of a table, else a text a line; `-` is stdin."""
    from regard.data.names import parse_columns
    from regard.data.readers import read
    from regard.data.records import DocumentRecord
    from regard.data.sources import TABLES, suffix_of

    plain = columns is None and not Path(name).is_dir() and suffix_of(Path(name)) not in TABLES
    told = {} if columns is None else parse_columns(columns)
    reader = read(name, task="text", format="lines" if plain else None, columns=told)
    if told and reader.recognised.format == "text":
        raise InputError(f"--columns was given, but {name} is plain text and has none. Leave --columns out.")
    texts = []
    for record in reader:
        assert isinstance(record, DocumentRecord)
        if not record.text.strip():
            raise record.place.fault("holds an empty text", mend="Remove the line, or give it words.")
        texts.append(record.text)
    return texts


def _check_output(path: Path, *, per_token: bool) -> None:
    wanted = ".npz" if per_token else ".npy"
    if path.suffix != wanted:
        why = "one array a text (--pool none)" if per_token else "one vector a text"
        raise UsageError(f"--output {path} must end in {wanted} for {why}.")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} of --output does not exist. Make it first.")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"--output {path} cannot be written there. Name another place.")


def _write_arrays(path: Path, vectors: np.ndarray | list[np.ndarray]) -> None:
    """Whole or not at all: beside the place first, then renamed into it."""
    import numpy as np

    fresh = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            if isinstance(vectors, np.ndarray):
                np.save(file, vectors)
            else:
                np.savez(file, allow_pickle=False, **{str(number): array for number, array in enumerate(vectors)})
        fresh.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def _numbers(vector: np.ndarray, most: int = 5) -> str:
    rows = f"{vector.shape[0]} tokens × " if vector.ndim == 2 else ""
    first = " ".join(f"{number: .3f}" for number in vector.reshape(-1)[:most])
    return f"{rows}{vector.shape[-1]} numbers: {first} …"
