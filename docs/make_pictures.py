"""Draw the pictures of docs/gallery.md that commands write: `python docs/make_pictures.py`, or `make pictures`.

It takes a few minutes on two cores, and needs the extra minilm.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from pathlib import Path

import regard
from regard import cli, samples
from regard.predict.plots.positions import draw_positions, position_vectors

OUT = Path(__file__).parent / "pictures"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        train_file, test_file = split(work)
        regard.train(train_file, preset="probe", out=work / "probe", device="cpu")
        evaluation = regard.evaluate(regard.load(work / "probe", device="cpu"), test_file)
        evaluation.plot_reliability(OUT / "reliability.png")
        figure = draw_positions(position_vectors(regard.load("minilm", device="cpu"), 256), title="positions of minilm")
        figure.savefig(OUT / "positions.png", dpi=110)
        models = ["ngram", "probe", "tiny-bert"]
        out = work / "comparison"
        cli.main(["compare", str(samples.path("messages")), "--models", *models, "--curve", "--out", str(out)])
        for name in ("pareto", "learning_curves"):
            shutil.copy(out / f"{name}.png", OUT / f"{name}.png")


def split(folder: Path) -> tuple[Path, Path]:
    """Training and test rows of the sample messages."""
    with samples.path("messages").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    paths = folder / "train.csv", folder / "test.csv"
    for path, part in zip(paths, ([row for i, row in enumerate(rows) if i % 3], rows[::3]), strict=True):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *part])
    return paths


if __name__ == "__main__":
    main()
