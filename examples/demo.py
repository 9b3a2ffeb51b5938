"""From a file to a model, offline: which sentences are alike, a classifier for messages, a translator."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import numpy as np
from grammar import pairs
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import regard
from regard import cli, samples

SENTENCES = [
    "The kitten fell asleep on a warm windowsill.",
    "A small cat is napping in the sun.",
    "The central bank raised interest rates again.",
    "Borrowing money has become more expensive this year.",
    "She kneads the dough and lets it rise overnight.",
    "Fresh bread needs flour, water, salt and patience.",
    "The telescope found water in the air of a distant planet.",
    "Astronomers study worlds that circle other stars.",
]
MESSAGES = [
    "My parcel was due on Monday and there is still no sign of it.",
    "How do I change the password of my account?",
    "The lady at the desk was so patient with my grandmother, thank you!",
    "Is the blue lamp bright enough to read by?",
    "Could we have a table for six on Friday evening?",
    "You charged me twice, please send the money back.",
]
TEST_ROWS = 76
PAIRS, UNSEEN = 1200, 100  # sentences to learn a translation from, and to test it on


def similarities(texts: list[str]) -> np.ndarray:
    """(texts, texts) cosines between the vectors of the texts."""
    vectors = np.asarray(regard.load("minilm").embed(texts, normalize=True))
    return np.asarray(vectors @ vectors.T)


def table(texts: list[str], alike: np.ndarray) -> Table:
    """One row a text, its nearest other text marked."""
    drawn = Table(
        title="How alike are these sentences? (cosine of their vectors; * marks the nearest)", box=SIMPLE_HEAD
    )
    drawn.add_column("sentence", no_wrap=True)
    for number in range(len(texts)):
        drawn.add_column(f"{number + 1} ", justify="right", no_wrap=True)
    for row, text in enumerate(texts):
        nearest = max((other for other in range(len(texts)) if other != row), key=lambda other: alike[row, other])
        cells = [f"{value:.2f} " for value in alike[row]]
        cells[row] = "[dim]·[/] "
        cells[nearest] = f"[bold green]{alike[row, nearest]:.2f}*[/]"
        drawn.add_row(f"{row + 1}  {text}", *cells)
    return drawn


def divide(folder: Path) -> tuple[Path, Path]:
    """The sample as two files: to learn from, and to be tested on. Its rows are in a mixed order."""
    folder.mkdir(parents=True, exist_ok=True)
    header, *rows = samples.path("messages").read_text(encoding="utf-8").splitlines(keepends=True)
    learn, test = folder / "messages.csv", folder / "messages-test.csv"
    learn.write_text(header + "".join(rows[:-TEST_ROWS]), encoding="utf-8")
    test.write_text(header + "".join(rows[-TEST_ROWS:]), encoding="utf-8")
    return learn, test


def write_pairs(folder: Path) -> tuple[Path, Path, list[str]]:
    """Pairs to learn, pairs that stay unseen, and some sentences of the latter."""
    every = pairs(PAIRS + UNSEEN)
    learn, unseen = folder / "english-spanish.tsv", folder / "english-spanish-unseen.tsv"
    for path, some in ((learn, every[:PAIRS]), (unseen, every[PAIRS:])):
        path.write_text("source\ttarget\n" + "".join(f"{one}\t{other}\n" for one, other in some), encoding="utf-8")
    return learn, unseen, [english for english, _ in every[-3:]]


def translate(out: Path, console: Console, *, quick: bool) -> None:
    """A recurrent network with attention learns a small grammar; what it looks at is drawn."""
    learn, unseen, some = write_pairs(out / "demo-data")
    model, start = out / "demo-translate", ["--preset", "tiny-gru-additive" if quick else "gru-mini"]
    course = ["--epochs", 1 if quick else 7, "--lr", "5e-3", "--batch-size", 32, "--dropout", 0.1, "--dev-fraction", 0]
    regard_("train", learn, "--task", "translate", *start, *course, "--out", model, "--overwrite")
    console.print("\nSentences it has not seen, of the same few dozen words:", style="bold")
    regard_("evaluate", model, unseen)
    regard_("translate", model, *some, "--alignment-plot", out / "demo-alignment.png")
    console.print(f"\nWhere it looked is in {out / 'demo-alignment.png'}: noun and adjective change places.")


def regard_(*words: object) -> None:
    """A command as it would be typed, and what it says."""
    argv = [str(word) for word in words]
    print(f"\n$ regard {shlex.join(argv)}", flush=True)
    if status := cli.main(argv):
        raise SystemExit(status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the model and the data go")
    parser.add_argument("--quick", action="store_true", help="a tiny network from nothing, to see that it all runs")
    given = parser.parse_args()
    console = Console()
    console.width = max(console.width, 130)  # a pipe has no width, and a narrow terminal would cut the numbers
    console.print(table(SENTENCES, similarities(SENTENCES)))
    learn, test = divide(given.out / "demo-data")
    model, start = given.out / "demo", ["--preset", "tiny-bert"] if given.quick else ["--start", "minilm"]
    epochs = 1 if given.quick else 4
    regard_("train", learn, *start, "--epochs", epochs, "--out", model, "--overwrite")
    regard_("evaluate", model, test)
    regard_("predict", model, *MESSAGES)
    translate(given.out, console, quick=given.quick)


if __name__ == "__main__":
    main()
