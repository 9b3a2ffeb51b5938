"""Vectors of words on the first 17 million words of a corpus: analogies by section, minutes, nearest words.

    python benchmarks/vectors.py --corpus wikipedia-2015.txt.xz --questions questions-words.txt
    python benchmarks/vectors.py ... --words 2000000 --kind glove --out /tmp/try       # a smaller one, elsewhere

The questions args are asked among words and phrases. `analogies.txt`, pairs written after the sections of Google's
set, and the nearest words are asked among the words alone: phrases like `king_john` would crowd around them.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import torch

from regard.word_vectors.analogies import read_analogies
from regard.word_vectors.files import save_vectors
from regard.word_vectors.train import KINDS, TrainedVectors, VectorSettings, train_vectors
from regard.word_vectors.vectors import AnalogyScore, WordVectors, total_score

TEN = ("king", "france", "computer", "music", "river", "physics", "football", "war", "good", "three")


def shown(scores: dict[str, AnalogyScore]) -> list[str]:
    lines = ["| section | right | known | asked | share of the known |", "|---|---|---|---|---|"]
    for name, score in {**scores, "**all**": total_score(scores)}.items():
        share = f"{score.accuracy:.1%}" if score.known else "–"
        lines.append(f"| {name} | {score.right} | {score.known} | {score.total} | {share} |")
    return lines


def words_alone(vectors: WordVectors) -> WordVectors:
    rows = [row for row, word in enumerate(vectors.words) if "_" not in word]
    return WordVectors(tuple(vectors.words[row] for row in rows), vectors.table[rows])


def page(learned: TrainedVectors, plain: WordVectors, sets: dict[str, dict[str, AnalogyScore]], peak: int) -> str:
    vectors = learned.vectors
    minutes = (
        f"From the packed file to the vectors {learned.seconds / 60:.1f} minutes by the clock, "
        f"{learned.cpu_seconds / 60:.1f} of processor time; {peak:,} MB at the peak."
    )
    args = learned.settings
    lines = [
        "Vectors of words: "
        + ", ".join(f"{name} {args[name]}" for name in ("kind", "width", "window", "min_count", "epochs", "phrases")),
        "",
        f"{torch.get_num_threads()} threads of {platform.machine()}; torch {torch.__version__}",
        "",
        f"{learned.words_read:,} words read, {len(vectors):,} words and phrases with a vector. {minutes}",
    ]
    for name, scores in sets.items():
        lines += ["", f"**{name}**", "", *shown(scores)]
    lines += ["", "| word | nearest |", "|---|---|"]
    for word in TEN:
        near = ", ".join(f"{one.word} {one.score:.2f}" for one in plain.nearest(word, 7)) if word in plain else "–"
        lines.append(f"| {word} | {near} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--kind", choices=KINDS, default="skipgram")
    parser.add_argument("--words", type=int, default=17_000_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--window", type=int, default=5)
    parser.add_argument("--phrases", type=float, nargs="*", default=[20.0, 20.0])
    parser.add_argument("--keep", type=Path, help="write the vectors there: .bin or .txt")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    settings = VectorSettings(
        kind=args.kind,
        max_words=args.words,
        epochs=args.epochs,
        width=args.width,
        window=args.window,
        phrases=tuple(args.phrases),
    )
    learned = train_vectors([args.corpus], settings)
    from data import peak_mb

    if args.keep:
        save_vectors(learned.vectors, args.keep)
    keep(learned, args.questions, peak_mb(), args.out)


def keep(learned: TrainedVectors, questions: Path, peak: int, out: Path) -> None:
    """Ask everything, write the page and the numbers, and say the page."""
    plain = words_alone(learned.vectors)
    asked, pairs = read_analogies(questions), read_analogies(Path(__file__).with_name("analogies.txt"))
    sets = {
        "The questions args, among words and phrases": learned.vectors.analogies(asked),
        "The questions args, among words alone": plain.analogies(asked),
        "Pairs after Google's sections, among words and phrases": learned.vectors.analogies(pairs),
        "Pairs after Google's sections, among words alone": plain.analogies(pairs),
    }
    text = page(learned, plain, sets, peak)
    out.mkdir(parents=True, exist_ok=True)
    name = f"vectors-{learned.settings['kind']}"
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    numbers = {
        "settings": learned.settings,
        "seconds": round(learned.seconds, 1),
        "cpu_seconds": round(learned.cpu_seconds, 1),
        "peak_mb": peak,
        "sets": {
            title: {section: [s.right, s.known, s.total] for section, s in scores.items()}
            for title, scores in sets.items()
        },
    }
    (out / f"{name}.json").write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
