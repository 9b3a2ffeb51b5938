"""`regard tokenizer`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from regard.cli.arguments import Encoding, Json
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_table, progress_bar
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.text.tokenizer_report import TokenizerReport

HELP = """Train a tokenizer on text files of any size.

Examples:
  regard tokenizer corpus.txt --out vocabulary
  regard tokenizer part1.txt.gz part2.txt.xz --kind bpe --size 32000 --out vocabulary
  regard tokenizer corpus.txt --kind bpe --special-tokens roberta --out vocabulary
  regard tokenizer corpus.txt --kind wordpiece --cased --out vocabulary --json"""


@dataclass(frozen=True)
class TokenizerCommand:
    files: Annotated[
        Positional[tuple[str, ...]], arg(help="Text files, plain or compressed as .gz or .xz.", metavar="FILE...")
    ]
    out: Annotated[Path, arg(help="Folder to write; transformers' AutoTokenizer opens it.", metavar="DIR")]
    kind: Annotated[
        Literal["wordpiece", "bpe", "unigram", "word", "char"],
        arg(
            help="Kind: WordPiece as in BERT, byte-level BPE as in GPT-2, Unigram as in T5, whole words for toy texts, "
            "or single characters."
        ),
    ] = "wordpiece"
    size: Annotated[int, arg(help="Vocabulary size, special tokens included.")] = 16_000
    special_tokens: Annotated[
        Literal["gpt2", "t5", "roberta", "bert"] | None,
        arg(help="Special tokens of --kind bpe: GPT-2 (default), T5 (translation), or, with a mask, RoBERTa or BERT."),
    ] = None
    lowercase: Annotated[bool, arg(help="Lowercase all text; the default for wordpiece.")] = False
    cased: Annotated[bool, arg(help="Keep uppercase letters; the default for all other kinds.")] = False
    alphabet: Annotated[
        int, arg(help="Maximum number of distinct characters; rarer ones become the unknown token.")
    ] = 1000
    encoding: Encoding = None
    overwrite: Annotated[bool, arg(help="Write to --out even if it is not empty.")] = False
    json: Json = False


def run(command: TokenizerCommand) -> None:
    if command.lowercase and command.cased:
        raise UsageError("--lowercase and --cased were given; give one of them.")
    if not command.files:
        raise UsageError("no file was given. Name at least one text file to learn from.")
    from regard.checkpoint.files import atomic_folder
    from regard.checkpoint.manifest import tokenizer_files
    from regard.text.learn import train_tokenizer
    from regard.text.text_files import first_lines
    from regard.text.tokenizer_report import tokenizer_report

    _check_inputs(command)
    lowercase = command.lowercase if command.lowercase or command.cased else None
    started = time.monotonic()
    with atomic_folder(command.out, overwrite=command.overwrite, drop=tokenizer_files) as folder:
        with progress_bar() as progress:
            learned = train_tokenizer(
                command.files,
                kind=command.kind,
                size=command.size,
                lowercase=lowercase,
                alphabet=command.alphabet,
                special_tokens=command.special_tokens,
                encoding=command.encoding,
                progress=progress,
            )
        learned.save(folder)
    report = tokenizer_report(learned, first_lines(command.files, 1000, encoding=command.encoding))
    if command.json:
        seconds = round(time.monotonic() - started, 3)
        print_json({**dataclasses.asdict(report), "seconds": seconds, "folder": str(command.out)})
    else:
        print_table([*_vocabulary(report), ("folder", str(command.out))])


def _check_inputs(command: TokenizerCommand) -> None:
    """No text to learn from is a file of the folder that is about to be replaced."""
    from regard.checkpoint.files import model_files

    replaced = model_files(command.out)
    for name in command.files:
        if any(Path(name).exists() and path.samefile(name) for path in replaced):
            raise UsageError(f"{name} is a file of --out {command.out} that would be replaced. Name another folder.")


def _vocabulary(report: TokenizerReport) -> list[tuple[str, str]]:
    return [
        ("kind", report.kind),
        ("size", f"{report.size:,}"),
        ("measured on", f"{pluralize(report.texts, 'line')}, {pluralize(report.words, 'word')}"),
        ("coverage", f"{report.coverage:.2%} of the words have no unknown token"),
        ("unknown", f"{report.unknown_fraction:.2%} of the tokens"),
        ("tokens per word", f"{report.tokens_per_word:.2f}"),
        ("single token", f"{report.single_token_fraction:.2%} of the words"),
        ("frequent", _tokens(report.frequent_words)),
        ("longest", _tokens(report.longest_tokens)),
        ("example", report.example),
        ("as tokens", _tokens(report.example_tokens)),
    ]


def _tokens(names: Sequence[str]) -> str:
    """Tokens separated by spaces, with visible characters for spaces inside them."""
    return " ".join(name.translate({ord(" "): "␣", ord("\n"): "↵", ord("\t"): "⇥"}) for name in names)


COMMAND = Command(name="tokenizer", arguments=TokenizerCommand, help=HELP, run=run)
