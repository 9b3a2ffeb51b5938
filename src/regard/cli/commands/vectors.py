"""`regard vectors`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from regard.cli.arguments import Encoding, Json, check_output
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_table, progress_bar
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.word_vectors.train import TrainedVectors
    from regard.word_vectors.vectors import Neighbor, WordVectors

HELP = """Train word vectors on text files; find nearest words and solve analogies.

Examples:
  regard vectors corpus.txt --out vectors.bin
  regard vectors corpus.txt.xz --max-words 17000000 --epochs 3 --out vectors.bin --json
  regard vectors --load vectors.bin --nearest king --analogy "king - man + woman"
  regard vectors --load vectors.bin --score questions-words.txt"""


@dataclass(frozen=True)
class VectorsCommand:
    files: Annotated[
        Positional[tuple[str, ...]],
        arg(
            help="Text files to train on, plain or compressed as .gz or .xz.",
            metavar="[FILE ...]",
            help_behavior_hint="",
        ),
    ] = ()
    out: Annotated[
        Path | None, arg(help="Write the vectors to this file: .bin is binary, .txt and .vec are text.", metavar="FILE")
    ] = None
    load: Annotated[
        Path | None,
        arg(help="Load trained vectors, in the format of word2vec or GloVe, instead of training.", metavar="FILE"),
    ] = None
    kind: Annotated[
        Literal["skipgram", "cbow", "glove"],
        arg(help="Method: skip-gram or CBOW with negative sampling, or GloVe."),
    ] = "skipgram"
    encoding: Encoding = None
    width: Annotated[int, arg(help="Dimension of the vectors.")] = 100
    window: Annotated[int, arg(help="Context size: words to the left and to the right.")] = 5
    min_count: Annotated[int, arg(help="Minimum number of occurrences of a word.")] = 5
    epochs: Annotated[int | None, arg(help="Passes over the text; the default depends on --kind.")] = None
    max_words: Annotated[int | None, arg(help="Read only the first N words of the text.")] = None
    negatives: Annotated[float, arg(help="Negative samples per pair of words.")] = 5.0
    subsample: Annotated[float, arg(help="Frequency above which words are randomly skipped (subsampling).")] = 1e-4
    lr: Annotated[float | None, arg(help="Learning rate; the default depends on --kind.")] = None
    seed: Annotated[int, arg(help="Random seed.")] = 0
    nearest: Annotated[tuple[str, ...], arg(help="Print the nearest words of these words.", metavar="WORD ...")] = ()
    analogy: Annotated[
        tuple[str, ...],
        arg(help='Analogy as a formula, "king - man + woman", or as A B C: A is to B as C is to which word?'),
    ] = ()
    score: Annotated[
        Path | None, arg(help="File of analogies to evaluate on, in the format of questions-words.txt.", metavar="FILE")
    ] = None
    method: Annotated[Literal["add", "mul"], arg(help="Formula for analogies: 3CosAdd or 3CosMul.")] = "add"
    top: Annotated[int, arg(help="Number of words to print.")] = 10
    json: Json = False


def run(command: VectorsCommand) -> None:
    queries = bool(command.nearest or command.analogy or command.score)
    if bool(command.files) == (command.load is not None):
        raise UsageError("give text files to learn from, or --load FILE; one of them.")
    if command.load is not None and not queries and command.out is None:
        raise UsageError("--load was given with nothing to do. Add --nearest, --analogy, --score, or --out to convert.")
    if command.files and command.out is None and not queries:
        raise UsageError(
            "no output was requested. Add --out FILE to write the vectors, or --nearest, --analogy or --score."
        )
    from regard.word_vectors.files import check_target, load_vectors, save_vectors

    if command.out is not None:
        check_target(command.out)
        check_output(command.out, "--out", inputs=(*command.files, command.load, command.score))
    values: dict[str, Any] = {}
    if command.load is not None:
        vectors = load_vectors(command.load)
        values["vectors"], values["width"] = len(vectors), int(vectors.table.shape[1])
    else:
        learned = _learned(command)
        vectors = learned.vectors
        values |= _training_summary(learned)
    if command.out is not None:
        save_vectors(vectors, command.out)
        values["output"] = str(command.out)
    values |= _answers(command, vectors)
    print_json(values) if command.json else _show(values)


def _learned(command: VectorsCommand) -> TrainedVectors:
    from regard.word_vectors.train import VectorSettings, train_vectors

    names = [field.name for field in dataclasses.fields(VectorSettings)]
    settings = VectorSettings(**{name: getattr(command, name) for name in names})
    with progress_bar() as progress:
        return train_vectors(command.files, settings, encoding=command.encoding, progress=progress)


def _training_summary(learned: TrainedVectors) -> dict[str, Any]:
    return {
        "kind": learned.settings["kind"],
        "vectors": len(learned.vectors),
        "width": int(learned.vectors.table.shape[1]),
        "words_read": learned.words_read,
        "words_kept": learned.words_kept,
        "seconds": round(learned.seconds, 3),
        "cpu_seconds": round(learned.cpu_seconds, 3),
    }


def _answers(command: VectorsCommand, vectors: WordVectors) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if command.nearest:
        values["nearest"] = {word: _near(vectors.nearest(word, command.top)) for word in command.nearest}
    if command.analogy:
        values["analogy"] = _near(_analogy(command, vectors))
    if command.score is not None:
        from regard.word_vectors.analogies import read_analogies
        from regard.word_vectors.vectors import total_score

        scores = vectors.analogies(read_analogies(command.score), method=command.method)
        sections = {**scores, "all": total_score(scores)}
        values["score"] = {
            name: dataclasses.asdict(one) | {"accuracy": round(one.accuracy, 4)} for name, one in sections.items()
        }
    return values


def _analogy(command: VectorsCommand, vectors: WordVectors) -> list[Neighbor]:
    """The words that solve an analogy: one formula, or three words."""
    if len(command.analogy) == 3:
        a, b, c = command.analogy
        return vectors.analogy(a, b, c, top=command.top, method=command.method)
    if command.method != "add":
        raise UsageError("--method mul needs an analogy of three words: --analogy A B C, not a formula.")
    return vectors.formula(" ".join(command.analogy), top=command.top)


def _near(neighbors: list[Any]) -> list[dict[str, Any]]:
    return [{"word": one.word, "score": round(one.score, 4)} for one in neighbors]


def _show(values: dict[str, Any]) -> None:
    rows = []
    for name, value in values.items():
        if name == "nearest":
            rows += [(f"nearest {word}", _side_by_side(neighbors)) for word, neighbors in value.items()]
        elif name == "analogy":
            rows.append((name, _side_by_side(value)))
        elif name == "score":
            rows += [(f"score {section}", _scored(one)) for section, one in value.items()]
        else:
            rows.append((name.replace("_", " "), f"{value:,}" if isinstance(value, int | float) else str(value)))
    print_table(rows)


def _scored(one: dict[str, Any]) -> str:
    if not one["known"]:
        return f"none of {pluralize(one['total'], 'question')} has all its words in the vocabulary"
    return f"{one['accuracy']:.1%} ({one['right']} of {one['known']} known, {one['total']} asked)"


def _side_by_side(neighbors: list[dict[str, Any]]) -> str:
    return ", ".join(f"{one['word']} {one['score']:.2f}" for one in neighbors)


COMMAND = Command(name="vectors", arguments=VectorsCommand, help=HELP, run=run)
