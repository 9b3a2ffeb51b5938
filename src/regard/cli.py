"""The verbs of the command line, and the only room that prints.

Answers go to stdout, progress and warnings to stderr. Exit 0, 1 for what a user can mend, 2 for wrong use. Nothing
heavy is imported before a verb needs it, so that `regard --help` answers at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg

from regard import __version__
from regard.errors import InputError, RegardError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    from regard.device import Report
    from regard.text.report import Report as VocabularyReport

HELP = """usage: regard VERB [-h] [OPTIONS] ...

Attention, Transformers and BERT: from text and a task to a small, fast model.

Verbs:
{verbs}

Examples:
  regard info bert-base-uncased             what a network is, before anything is downloaded
  regard embed minilm "a text" "another"    one vector a text
  regard embed --help                       everything a verb can do, with examples

MODEL is a folder, the name of a preset, "minilm", or a hub id. Every verb takes --json. Answers go to stdout, progress
and warnings to stderr; the exit status is 0, 1 for something that failed, 2 for wrong use. regard --version tells the
version."""

MODEL_HELP = 'A model folder, the name of a preset, "minilm", or a hub id.'
JSON_HELP = "Print JSON instead of a table."

ModelName = Annotated[Positional[str], arg(help=MODEL_HELP, metavar="MODEL")]
Json = Annotated[bool, arg(help=JSON_HELP)]


class UsageError(Exception):
    """Arguments that do not go together."""


@dataclass(frozen=True)
class Info:
    model: ModelName
    json: Json = False


@dataclass(frozen=True)
class Embed:
    model: ModelName
    texts: Annotated[
        Positional[tuple[str, ...]], arg(help="The texts themselves.", metavar="[TEXT ...]", help_behavior_hint="")
    ] = ()
    input: Annotated[
        str | None,
        arg(help='A file of texts instead: one a line, or .jsonl with a "text" in each; - is stdin.', metavar="FILE"),
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


@dataclass(frozen=True)
class Doctor:
    json: Json = False


@dataclass(frozen=True)
class LearnTokenizer:
    files: Annotated[
        Positional[tuple[str, ...]], arg(help="Text files: UTF-8, plain or packed as .gz or .xz.", metavar="FILE...")
    ]
    out: Annotated[Path, arg(help="The folder to write, which transformers' AutoTokenizer opens.", metavar="DIR")]
    kind: Annotated[
        Literal["wordpiece", "bpe", "unigram", "char"],
        arg(help="WordPiece as in BERT, byte-level pairs as in GPT-2, Unigram as in T5, or single characters."),
    ] = "wordpiece"
    size: Annotated[int, arg(help="How many pieces, special tokens included.")] = 16_000
    lowercase: Annotated[bool, arg(help="Make all letters small; wordpiece does unless told --cased.")] = False
    cased: Annotated[bool, arg(help="Keep capital letters; the others do unless told --lowercase.")] = False
    alphabet: Annotated[int, arg(help="How many characters are kept at most; rarer ones become unknown.")] = 1000
    overwrite: Annotated[bool, arg(help="Write into a folder that holds something already.")] = False
    json: Json = False


INFO = """Parameters, shape, family, task, tokenizer and size on disk of a model.

Examples:
  regard info bert-base-uncased
  regard info runs/reviews --json"""

EMBED = """Vectors of texts, from any layer.

Examples:
  regard embed minilm "a text" "another text"
  regard embed minilm --input texts.txt --output vectors.npy
  regard embed minilm --input rows.jsonl --layer 3 --pool first --json
  cat texts.txt | regard embed minilm --input - --pool none --output tokens.npz"""

TOKENIZER = """Learn a vocabulary from text files of any size.

Examples:
  regard tokenizer corpus.txt --out vocabulary
  regard tokenizer part1.txt.gz part2.txt.xz --kind bpe --size 32000 --out vocabulary
  regard tokenizer corpus.txt --kind wordpiece --cased --out vocabulary --json"""

DOCTOR = """What this machine has, and what regard will use of it.

Examples:
  regard doctor
  regard doctor --json"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status."""
    try:
        with _warnings_on_stderr():
            status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except SystemExit as stop:  # from the parser, which has said why
        return int(stop.code or 0)
    except UsageError as error:
        print(f"regard: {error}", file=sys.stderr)
        return 2
    except RegardError as error:
        print(f"regard: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("regard: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a name too long for any file, an output that is full
        with contextlib.suppress(OSError):
            print(f"regard: {error.strerror or error}", file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(given: list[str]) -> int:
    if not given or given[0] in ("-h", "--help"):
        verbs = "\n".join(f"  {name:<10}{about.splitlines()[0]}" for name, (_, about, _) in VERBS.items())
        print(HELP.format(verbs=verbs), file=sys.stdout if given else sys.stderr)
        return 0 if given else 2
    if given[0] == "--version":
        print(f"regard {__version__}")
        return 0
    if given[0] not in VERBS:
        raise UsageError(f'"{given[0]}" is not a verb.{did_you_mean(given[0], VERBS)} See regard --help.')
    settings, about, work = VERBS[given[0]]
    prog, args = f"regard {given[0]}", given[1:]
    work(tyro.cli(settings, prog=prog, description=about, args=args, config=(FlagCreatePairsOff,)))
    return 0


def info(verb: Info) -> None:
    from regard.predict import info as look_up

    found = dataclasses.asdict(look_up(verb.model))
    if verb.json:
        _print_json(found)
    else:
        _print_table([(name.replace("_", " "), _shown(name, value)) for name, value in found.items()])


def embed(verb: Embed) -> None:
    if verb.texts and verb.input is not None:
        raise UsageError("texts were given and --input too; give one of them.")
    if not verb.texts and verb.input is None:
        raise UsageError('no text was given. Write it after the model ("a text"), or use --input FILE.')
    if verb.output is not None:
        _check_output(verb.output, per_token=verb.pool == "none")
    texts = list(verb.texts) if verb.input is None else read_texts(verb.input)

    from regard.predict import load

    model = load(verb.model, device=verb.device, dtype=verb.dtype)
    with _progress("texts") as progress:
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
        _print_json(said) if verb.json else print(f"{len(texts)} texts, {said['width']} numbers each: {verb.output}")
    elif verb.json:
        name = "vectors" if verb.pool == "none" else "vector"
        for text, vector in zip(texts, vectors, strict=True):
            _print_json({"text": text, name: vector.tolist()})
    else:
        _print_table([(_short(text), _numbers(vector)) for text, vector in zip(texts, vectors, strict=True)])


def tokenizer(verb: LearnTokenizer) -> None:
    if verb.lowercase and verb.cased:
        raise UsageError("--lowercase and --cased were given; give one of them.")
    if not verb.files:
        raise UsageError("no file was given. Name at least one text file to learn from.")
    from regard.checkpoint.files import whole_folder
    from regard.text.learn import learn
    from regard.text.report import report
    from regard.text.stream import first_lines

    lowercase = verb.lowercase if verb.lowercase or verb.cased else None
    began = time.monotonic()
    with whole_folder(verb.out, overwrite=verb.overwrite) as folder:
        with _progress("bytes") as progress:
            learned = learn(
                verb.files,
                kind=verb.kind,
                size=verb.size,
                lowercase=lowercase,
                alphabet=verb.alphabet,
                progress=progress,
            )
        learned.save(folder)
    found = report(learned, first_lines(verb.files, 1000))
    if verb.json:
        seconds = round(time.monotonic() - began, 3)
        _print_json({**dataclasses.asdict(found), "seconds": seconds, "folder": str(verb.out)})
    else:
        _print_table([*_vocabulary(found), ("folder", str(verb.out))])


def doctor(verb: Doctor) -> None:
    from regard.device import report

    found = report()
    if verb.json:
        _print_json({"regard": __version__, **dataclasses.asdict(found)})
    else:
        _print_table(_diagnosis(found))


VERBS: dict[str, tuple[type, str, Callable[[Any], None]]] = {
    "info": (Info, INFO, info),
    "embed": (Embed, EMBED, embed),
    "tokenizer": (LearnTokenizer, TOKENIZER, tokenizer),
    "doctor": (Doctor, DOCTOR, doctor),
}


def read_texts(name: str) -> list[str]:
    """The texts of a file: lines of plain text, or the "text" of each object of a .jsonl; `-` is stdin, as lines."""
    suffix = Path(name).suffix.lower()
    if name != "-" and suffix not in (".txt", ".text", ".jsonl", ""):
        raise InputError(f'{name} is not read: "{suffix}" is not .txt (one text a line) or .jsonl (a "text" in each).')
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        content = raw.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{name} line {line} is not UTF-8. Convert it: iconv -f latin1 -t utf-8 {name}") from error
    lines = list(enumerate(content.replace("\r\n", "\n").removesuffix("\n").split("\n"), 1)) if content.strip() else []
    if suffix == ".jsonl":
        lines = [(number, _text_of(line, f"{name} line {number}")) for number, line in lines if line.strip()]
    if not lines:
        raise InputError(f"{name} holds no text; expected at least one line.")
    for number, text in lines:
        if not text.strip():
            raise InputError(f"{name} line {number} holds an empty text. Remove the line, or give it words.")
    return [text for _, text in lines]


def _text_of(line: str, where: str) -> str:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f'{where} is not JSON: {error}. Expected an object like {{"text": "…"}}.') from error
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        has = ", ".join(map(str, row)) if isinstance(row, dict) else type(row).__name__
        raise InputError(f'{where} has no "text" string (it has: {has}). Expected an object like {{"text": "…"}}.')
    text: str = row["text"]
    return text


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


@contextlib.contextmanager
def _progress(what: str, *, after: float = 2.0) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr for work that takes longer than a moment, where a person is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    began = time.monotonic()
    bar = Progress(
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what)

    def tell(done: int, total: int) -> None:
        if time.monotonic() - began >= after:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield tell
    finally:
        bar.stop()


@contextlib.contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"regard: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False))


def _print_table(rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        print(f"{left.ljust(width)}  {right}")


def _vocabulary(found: VocabularyReport) -> list[tuple[str, str]]:
    return [
        ("kind", found.kind),
        ("size", f"{found.size:,}"),
        ("measured on", f"{found.texts:,} lines, {found.words:,} words"),
        ("coverage", f"{found.coverage:.2%} of the words have nothing unknown"),
        ("unknown", f"{found.unknown_rate:.2%} of the pieces"),
        ("pieces per word", f"{found.pieces_per_word:.2f}"),
        ("whole words", f"{found.whole:.2%}"),
        ("sample", _pieces(found.sample)),
        ("longest", _pieces(found.longest)),
        ("example", found.example),
        ("in pieces", _pieces(found.example_pieces)),
    ]


def _pieces(names: Sequence[str]) -> str:
    """Side by side, with blanks that can be seen."""
    return " ".join(name.translate({ord(" "): "␣", ord("\n"): "↵", ord("\t"): "⇥"}) for name in names)


def _diagnosis(found: Report) -> list[tuple[str, str]]:
    memory = "unknown" if found.memory is None else _bytes(found.memory)
    rows = [
        ("regard", f"{__version__} (Python {found.python}, torch {found.torch}, {found.system})"),
        ("device", f"{found.device}, by --device auto"),
        ("cpu", f"{found.cores} cores, {found.threads} threads used; memory {memory}"),
    ]
    for number, gpu in enumerate(found.gpus):
        formats = "bf16, fp16, fp32" if gpu.bf16 else "fp16, fp32"
        rows.append((f"cuda:{number}", f"{gpu.name}, {_bytes(gpu.memory)}, capability {gpu.capability}, {formats}"))
    if not found.gpus:
        rows.append(("gpu", "none that torch can use"))
    rows += [(f"attention on {where}", kernel) for where, kernel in found.kernels.items()]
    rows.append(("torch.compile", found.compiler or "not on the CPU: no C++ compiler found; install g++ or clang++"))
    rows += [(f"extra {name}", "installed" if command is None else command) for name, command in found.extras.items()]
    rows.append(
        ("hub", f"{'offline (HF_HUB_OFFLINE)' if found.offline else 'asked for hub ids only'}; {found.hub_cache}")
    )
    return rows


def _shown(name: str, value: object) -> str:
    if value is None:
        return "–"
    if name == "bytes" and isinstance(value, int):
        return _bytes(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _short(text: str, most: int = 40) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _numbers(vector: np.ndarray, most: int = 5) -> str:
    rows = f"{vector.shape[0]} tokens × " if vector.ndim == 2 else ""
    first = " ".join(f"{number: .3f}" for number in vector.reshape(-1)[:most])
    return f"{rows}{vector.shape[-1]} numbers: {first} …"


if __name__ == "__main__":
    sys.exit(main())
