"""Digits drawn on a canvas, read from left to right by a small decoder with cross-attention: soft and hard.

    python benchmarks/canvas.py src/regard/lessons/pages/data/canvas.json

The canvas is cut into columns of five pixels, and each of the 32 possible columns is a token of the encoder. The file
has a few canvases with the digits that were read, and where the decoder looked for each.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

import regard
from regard.model import hooks

GLYPHS = (
    "111 101 101 101 111", "010 110 010 010 111", "111 001 111 100 111", "111 001 111 001 111", "101 101 111 001 001",
    "111 100 111 001 111", "111 100 111 101 111", "111 001 001 010 010", "111 101 111 101 111", "111 101 111 001 111",
)  # fmt: skip
HEIGHT, WIDTH, DIGITS = 5, 14, 3
START, END, ZERO = 32, 33, 34  # tokens: 32 columns, start, end, ten digits


def canvas(rng: random.Random) -> tuple[torch.Tensor, list[int], list[int]]:
    """An image, the digits on it, and the column where each begins."""
    image = torch.zeros(HEIGHT, WIDTH)
    digits = [rng.randrange(10) for _ in range(DIGITS)]
    places = []
    column = rng.randrange(2)
    for digit in digits:
        for row, line in enumerate(GLYPHS[digit].split()):
            image[row, column : column + 3] = torch.tensor([float(bit) for bit in line])
        places.append(column)
        column += 3 + rng.randrange(1, 3)
    return image, digits, places


def columns(image: torch.Tensor) -> list[int]:
    """One token for each column: its five pixels as bits of a number."""
    return (image.T @ torch.tensor([16.0, 8.0, 4.0, 2.0, 1.0])).long().tolist()


def train(select: str, rows: list[Any], *, steps: int, seed: int = 0) -> regard.Model:
    """A Transformer of one encoder layer and one decoder layer with one head."""
    attention = {"heads": 1, "dropout": 0.0, "select": select}
    sizes = {"vocabulary": 44, "width": 48, "ffn_width": 96, "layers": 1, "decoder_layers": 1, "dropout": 0.0}
    model = regard.create(
        "tiny-transformer", device="cpu", seed=seed, positions="learned", attention=attention, **sizes
    )
    network = model.network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.003)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.004, total_steps=steps)
    sources = [columns(image) for image, _, _ in rows]
    targets = [[ZERO + digit for digit in digits] for _, digits, _ in rows]
    rng = random.Random(seed)
    for step in range(steps):
        picked = rng.sample(range(len(rows)), 32)
        answers = torch.tensor([[*targets[row], END] for row in picked]).flatten()
        source = regard.Ragged.of([sources[row] for row in picked])
        target = regard.Ragged.of([[START, *targets[row]] for row in picked])
        loss = F.cross_entropy(network(source, target).logits, answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            print(f"{select} step {step + 1}: loss {loss.item():.3f}", flush=True)
    network.eval()
    return model


def read(model: regard.Model, image: torch.Tensor) -> tuple[list[int], list[list[float]]]:
    """The digits that the decoder writes one after the other, and its weights over the columns for each."""
    source = regard.Ragged.of([columns(image)])
    written = [START]
    for _ in range(DIGITS):
        written.append(int(model.network(source, regard.Ragged.of([written])).logits[-1].argmax()))
    target = regard.Ragged.of([written[:-1]])
    weights = hooks.attention(model.network, source, target=target, layers=[0], stack="decoder", cross=True)
    maps = [[round(weight, 3) for weight in row] for row in weights[0][0][0].tolist()]
    return [token - ZERO for token in written[1:]], maps


def main(path: Path, steps: int) -> None:
    rng = random.Random(0)
    rows = [canvas(rng) for _ in range(4000)]
    test = [canvas(random.Random(10_000 + number)) for number in range(200)]
    shown = [{"image": image.int().tolist(), "digits": digits, "places": places} for image, digits, places in test[:3]]
    results: dict[str, Any] = {"command": "python benchmarks/canvas.py FILE", "canvases": shown}
    for select in ("soft", "hard"):
        model = train(select, rows, steps=steps)
        readings = [read(model, image) for image, _, _ in test]
        pairs = zip(readings, test, strict=True)
        right = [one == true for (got, _), (_, digits, _) in pairs for one, true in zip(got, digits, strict=True)]
        results[select] = {
            "accuracy": round(sum(right) / len(right), 4),
            "weight_on_digit": round(inside(readings, test), 4),
            "readings": [{"digits": digits, "maps": maps} for digits, maps in readings[:3]],
        }
        print(select, results[select]["accuracy"], results[select]["weight_on_digit"], flush=True)
        path.write_text(json.dumps(results) + "\n", encoding="utf-8")


def inside(readings: list[Any], test: list[Any]) -> float:
    """The mean weight on the three columns of the digit that is being read."""
    shares = [
        sum(row[column : column + 3])
        for (_, maps), (_, _, places) in zip(readings, test, strict=True)
        for row, column in zip(maps, places, strict=True)
    ]
    return sum(shares) / len(shares)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 450)
