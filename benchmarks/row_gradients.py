"""Steps of fine-tuning minilm on the CPU with sparse and with dense gradients of its token embeddings, side by side.

    python benchmarks/row_gradients.py [--threads 2] [--steps 30]

Both networks get the same random tokens, one after the other in every step. Printed is the median time of a step.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from statistics import median

import torch

import regard
from regard.data.batching.examples import Inputs
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.tasks.classify import Classify
from regard.training.defaults.recipes import fill_from_recipe
from regard.training.engine.adamw import row_gradients
from regard.training.engine.optimizer import build_optimizer
from regard.training.engine.stepper import Stepper
from regard.training.settings import Settings

CASES = ((384, 16, 1_500), (640, 8, 3_000), (900, 32, 3_000), (900, 32, 20_000), (2_750, 32, 20_000))
TASK = Classify(names=("a", "b", "c"))


def batches(tokens: int, texts: int, words: int, steps: int) -> list[Inputs]:
    """Texts of equal length, of so many different tokens."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = torch.randperm(30_000, generator=generator)[:words]
    results = []
    for _ in range(steps):
        picked = vocabulary[torch.randint(0, words, (texts, tokens // texts), generator=generator)]
        labels = torch.randint(0, len(TASK.names), (texts,), generator=generator)
        inputs = {"label": labels, "weight": torch.ones(texts)}
        results.append(Inputs(Ragged.of(picked.tolist()), inputs, rows=texts))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config, settings = regard.load("minilm").config, fill_from_recipe(Settings())
    for tokens, texts, words in CASES:
        networks = [Transformer(config, heads={"sequence": 3}).train() for _ in range(2)]
        steppers = [
            Stepper(network, TASK, build_optimizer(network, settings, lr=1e-4), clip=1.0) for network in networks
        ]
        seconds: tuple[list[float], list[float]] = ([], [])
        for inputs in batches(tokens, texts, words, options.steps):
            for number, (network, stepper) in enumerate(zip(networks, steppers, strict=True)):
                with row_gradients(network) if number else nullcontext():
                    began = time.perf_counter()
                    stepper.part(inputs)
                    stepper.update()
                    seconds[number].append(time.perf_counter() - began)
        dense, rows = (median(times[options.steps // 4 :]) * 1e3 for times in seconds)
        print(
            f"{tokens} tokens in {texts} texts, {words} different ones: dense {dense:.0f} ms, rows {rows:.0f} ms, "
            f"{1 - rows / dense:.1%} less",
            flush=True,
        )


if __name__ == "__main__":
    main()
