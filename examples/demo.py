"""Which sentences are alike: the pretrained encoder on a few texts, offline."""

from __future__ import annotations

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import regard

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


def similarities(texts: list[str]) -> np.ndarray:
    """(texts, texts) cosines between the vectors of the texts."""
    vectors = np.asarray(regard.load("minilm").embed(texts, normalise=True))
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


def main() -> None:
    console = Console()
    console.width = max(console.width, 130)  # a pipe has no width, and a narrow terminal would cut the numbers
    console.print(table(SENTENCES, similarities(SENTENCES)))


if __name__ == "__main__":
    main()
