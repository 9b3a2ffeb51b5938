"""`regard embed`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from regard.cli.arguments import (
    BatchTokens,
    Device,
    Dtype,
    Encoding,
    Engine,
    FileFormat,
    Input,
    Json,
    LiteralTexts,
    ModelName,
    Ray,
    RayWorkers,
    ShardRows,
    TextColumn,
    Texts,
    check_not_files,
    check_output,
    check_ray,
    check_texts,
    read_texts,
)
from regard.cli.command import Command
from regard.cli.output import (
    UsageError,
    print_json,
    print_parts,
    print_table,
    progress_bar,
    progress_rows,
    shorten,
    untrained_field,
)
from regard.errors import pluralize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regard.predict import Model
    from regard.progress import OnProgress

HELP = """Compute one vector per text, from any layer.

Examples:
  regard embed minilm "a text" "another text"
  regard embed minilm --input texts.txt --output vectors.npy
  regard embed minilm --input rows.jsonl --layer 3 --pooling first --json
  regard embed minilm --input reviews.csv --columns text=opinion --output vectors.npy
  cat texts.txt | regard embed minilm --input - --pooling none --output tokens.npz"""


@dataclass(frozen=True)
class EmbedCommand:
    model: ModelName
    texts: Annotated[Texts, arg(help="Texts to embed.")] = ()
    input: Input = None
    columns: TextColumn = None
    format: FileFormat = None
    encoding: Encoding = None
    literal: LiteralTexts = False
    output: Annotated[
        Path | None,
        arg(
            help="Write the vectors to this file: .npy, or .npz (one array per text) with --pooling none.",
            metavar="FILE",
        ),
    ] = None
    layer: Annotated[
        int | Literal["mix"],
        arg(help="Layer: 0 is the embeddings, 1 the first block, -1 the last; mix is the weighted sum of all (ELMo)."),
    ] = -1
    pooling: Annotated[
        Literal["auto", "mean", "first", "max", "none"],
        arg(help="Pooling of token vectors: auto is the model's own, none keeps one vector per token."),
    ] = "auto"
    normalize: Annotated[bool, arg(help="Scale every vector to length 1, so that a dot product is a cosine.")] = False
    ray: Ray = False
    ray_workers: RayWorkers = 0
    shard_rows: ShardRows = 1000
    batch_tokens: BatchTokens = 8192
    device: Device = "auto"
    dtype: Dtype = "fp32"
    engine: Engine = "auto"
    json: Json = False


def run(command: EmbedCommand) -> None:
    check_texts(command.texts, command.input, command.columns, command.encoding, command.format)
    check_not_files(command.texts, command.literal, "To read its texts, use --input {name}.")
    if command.ray:
        _run_on_ray(command)
        return
    if command.output is not None:
        _check_name(command.output, per_token=command.pooling == "none")
        check_output(command.output, "--output", inputs=(command.input,), model=command.model)
    texts = list(command.texts)
    if command.input is not None:
        texts = read_texts(command.input, command.columns, command.encoding, command.format)

    from regard.predict import load

    model = load(command.model, device=command.device, dtype=command.dtype, engine=command.engine)
    with progress_bar() as progress:
        vectors = _embed(model, texts, command, progress)
    if command.output is not None:
        _write_arrays(command.output, vectors)
        summary: dict[str, Any] = {
            "texts": len(texts),
            "width": int(vectors[0].shape[-1]),
            "output": str(command.output),
        }
        summary |= untrained_field(model)
        print_json(summary) if command.json else print(
            f"{pluralize(len(texts), 'text')}, {pluralize(summary['width'], 'number')} each: {command.output}"
        )
    elif command.json:
        name = "vectors" if command.pooling == "none" else "vector"
        for text, vector in zip(texts, vectors, strict=True):
            print_json({"text": text, name: vector.tolist()} | untrained_field(model))
    else:
        print_table([(shorten(text), _numbers(vector)) for text, vector in zip(texts, vectors, strict=True)])


def _run_on_ray(command: EmbedCommand) -> None:
    check_ray(output=command.output, file=command.input)
    if command.pooling == "none":
        raise UsageError("--ray and --pooling none contradict each other: --ray writes one vector per text.")
    assert command.output is not None
    assert command.input is not None
    from regard.cluster.bulk import run_on_ray

    with progress_rows() as progress:
        done = run_on_ray(
            command.model,
            "embed",
            read_texts(command.input, command.columns, command.encoding, command.format),
            command.output,
            load_options={"device": command.device, "dtype": command.dtype, "engine": command.engine},
            options={
                "layer": command.layer,
                "pooling": command.pooling,
                "normalize": command.normalize,
                "batch_tokens": command.batch_tokens,
            },
            workers=command.ray_workers,
            shard_rows=command.shard_rows,
            progress=progress,
        )
    print_parts(done.rows, done.parts, done.output, json=command.json)


def _embed(
    model: Model, texts: list[str], command: EmbedCommand, progress: OnProgress | None
) -> NDArray[np.float32] | list[NDArray[np.float32]]:
    """One vector per text, or with `--pooling none` one array of token vectors per text."""
    options: dict[str, Any] = {
        "layer": command.layer,
        "normalize": command.normalize,
        "batch_tokens": command.batch_tokens,
        "progress": progress,
    }
    if command.pooling == "none":
        return model.embed_tokens(texts, **options)
    return model.embed(texts, pooling=command.pooling, **options)


def _check_name(path: Path, *, per_token: bool) -> None:
    suffix = ".npz" if per_token else ".npy"
    if path.suffix != suffix:
        why = "one array per text (--pooling none)" if per_token else "one vector per text"
        raise UsageError(f"--output {path} must end in {suffix} for {why}.")


def _write_arrays(path: Path, vectors: np.ndarray | list[np.ndarray]) -> None:
    import numpy as np

    from regard.data.atomic import atomic_path

    with atomic_path(path) as new_file, new_file.open("wb") as file:
        if isinstance(vectors, np.ndarray):
            np.save(file, vectors)
        else:
            np.savez(file, allow_pickle=False, **{str(number): array for number, array in enumerate(vectors)})


def _numbers(vector: np.ndarray, most: int = 5) -> str:
    rows = f"{pluralize(vector.shape[0], 'token')} × " if vector.ndim == 2 else ""
    first = " ".join(f"{number: .3f}" for number in vector.reshape(-1)[:most])
    return f"{rows}{vector.shape[-1]} numbers: {first} …"


COMMAND = Command(name="embed", arguments=EmbedCommand, help=HELP, run=run)
