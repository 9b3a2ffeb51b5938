"""`regard evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from regard.cli.arguments import Answers, BatchTokens, Columns, Device, Dtype, Json, ModelName, SkipBad
from regard.cli.shared import print_json, print_said, print_scores, progress_rows

ABOUT = """Scores of a model on data, with 95 % intervals: labelled rows, or minimal pairs for a language model.

Examples:
  regard evaluate runs/reviews test.csv
  regard evaluate runs/reviews data/ --split test --json
  regard evaluate runs/reviews test.csv --answers answers.jsonl
  regard evaluate runs/reviews test.csv --columns text=opinion,label=stars
  regard evaluate runs/language "blimp/*.jsonl" --json"""


@dataclass(frozen=True)
class Evaluate:
    model: ModelName
    data: Annotated[
        Positional[str],
        arg(help="A file, a folder with test or valid, a glob, or - for stdin.", metavar="DATA"),
    ]
    split: Annotated[str | None, arg(help="Of a folder with several: test if not given.", metavar="NAME")] = None
    columns: Columns = None
    labels: Annotated[str | None, arg(help="How labels are to be read, if not as in the training.", metavar="KIND")] = (
        None
    )
    skip_bad: SkipBad = None
    answers: Answers = None
    batch_tokens: BatchTokens = 8192
    device: Device = "auto"
    dtype: Dtype = "fp32"
    json: Json = False


def run(verb: Evaluate) -> None:
    from regard.data.names import parse_columns
    from regard.evaluation import evaluate
    from regard.predict import load

    with progress_rows("rows") as tell:
        found = evaluate(
            load(verb.model, device=verb.device, dtype=verb.dtype),
            verb.data,
            split=verb.split,
            columns=None if verb.columns is None else parse_columns(verb.columns),
            labels=verb.labels,
            skip_bad=verb.skip_bad,
            answers=verb.answers,
            batch_tokens=verb.batch_tokens,
            tell=tell,
        )
    print_said(f"data: {found.data}")
    if found.bad:
        print_said(f"{found.bad:,} rows could not be used; they are in {verb.skip_bad}")
    if verb.json:
        names = ("task", "rows", "scores", "seconds", "folder")
        every = found.json()
        print_json({name: every[name] for name in names})
        return
    print_scores(found.scores)
    print(f"\n{found.rows:,} rows in {found.seconds:.1f} s, {found.rows / max(found.seconds, 1e-9):,.0f} a second.")
    if verb.answers is not None:
        print(f"The answers: {verb.answers}")
