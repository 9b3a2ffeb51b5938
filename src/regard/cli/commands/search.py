"""`regard search`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from regard.cli.arguments import BatchTokens, Device, Dtype, Encoding, Json, ModelName
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, print_status, progress_bar, shorten

if TYPE_CHECKING:
    from regard.predict.search.passages import Match
    from regard.predict.search.search_file import SearchResult

HELP = """Find the texts of a file that are most similar to a query.

Examples:
  regard search minilm notes.txt "how do I cancel"
  regard search minilm messages.csv "parcel is late" "money back" --top 3
  regard search minilm pages.jsonl "opening hours" --columns text=body --json
  regard search runs/similar /data/texts.txt "a query" --cache vectors/"""

SHOWN = 100  # characters of a text


@dataclass(frozen=True)
class SearchCommand:
    model: ModelName
    data: Annotated[
        Positional[str],
        arg(help="File with one text per line, or a table with a text column; - is stdin.", metavar="FILE"),
    ]
    queries: Annotated[
        Positional[tuple[str, ...]], arg(help="Queries to search for.", metavar="QUERY ...", help_behavior_hint="")
    ] = ()
    top: Annotated[int, arg(help="Number of results per query.", metavar="N")] = 10
    columns: Annotated[
        str | None, arg(help="Column with the texts; recognized by its name if not given.", metavar="text=NAME")
    ] = None
    encoding: Encoding = None
    cache: Annotated[
        Path | None, arg(help="Folder for cached vectors; the folder of FILE if not given.", metavar="DIR")
    ] = None
    no_cache: Annotated[bool, arg(help="Do not read or write cached vectors.")] = False
    window: Annotated[
        int | None,
        arg(help="Maximum tokens per passage; longer texts are split. The model's maximum if not given."),
    ] = None
    pooling: Annotated[
        Literal["auto", "mean", "first", "max"],
        arg(help="Pooling of token vectors; auto is the model's own."),
    ] = "auto"
    batch_tokens: BatchTokens = 8192
    device: Device = "auto"
    dtype: Dtype = "fp32"
    json: Json = False


def run(command: SearchCommand) -> None:
    if not command.queries:
        raise UsageError('no query was given. Write it after the file: regard search MODEL FILE "a query".')
    if command.no_cache and command.cache is not None:
        raise UsageError("--cache and --no-cache were given; give one of them.")
    from regard.data.schema.columns import parse_columns
    from regard.predict import load
    from regard.predict.search.search_file import search

    model = load(command.model, device=command.device, dtype=command.dtype)
    with progress_bar() as progress:
        result = search(
            model,
            command.data,
            command.queries,
            top=command.top,
            columns=None if command.columns is None else parse_columns(command.columns),
            encoding=command.encoding,
            window=command.window,
            pooling=command.pooling,
            cache=command.cache,
            use_cache=not command.no_cache,
            batch_tokens=command.batch_tokens,
            progress=progress,
        )
    _print_cache(result)
    for query, matches in zip(result.queries, result.matches, strict=True):
        if command.json:
            print_json({"query": query, "matches": [match.json() for match in matches]})
        else:
            _print_matches(query, matches, heading=len(result.queries) > 1)


def _print_cache(result: SearchResult) -> None:
    for note in result.notes:
        hint = " Name a folder for them with --cache DIR." if note.startswith("the vectors are not cached") else ""
        print_status(f"{note}{hint}")
    texts = f"{result.texts:,} {'text' if result.texts == 1 else 'texts'}"
    if result.cached:
        print_status(f"vectors of {texts} read from {result.cache}")
    elif result.cache is not None:
        print_status(f"vectors of {texts} cached in {result.cache}")


def _print_matches(query: str, matches: tuple[Match, ...], *, heading: bool) -> None:
    if heading:
        print(f"\n{shorten(query, SHOWN)}")
    width = max(4, *(len(str(match.line)) for match in matches))
    print(f"{'score':>7}  {'line':>{width}}  text")
    for match in matches:
        print(f"{match.score:7.4f}  {match.line!s:>{width}}  {shorten(match.passage, SHOWN)}")


COMMAND = Command(name="search", arguments=SearchCommand, help=HELP, run=run)
