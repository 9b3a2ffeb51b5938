"""Draws how the heads of a layer attend in one sentence: python examples/attention.py [FILE.png]"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

import regard

SENTENCE = "The cook who burned the soup opened a window."
SHOWN = [(1, 3), (3, 8), (6, 0)]  # layer and head


def draw(path: Path) -> None:
    model = regard.load("minilm", device="cpu")
    assert model.tokenizer is not None
    found = model.tokenizer.encode(SENTENCE)
    words = [model.tokenizer.backend.id_to_token(token) for token in found.ids]
    weights = model.attention(SENTENCE, layers=sorted({layer for layer, _ in SHOWN}))
    figure, panels = pyplot.subplots(1, len(SHOWN), figsize=(4.1 * len(SHOWN), 4.4), layout="constrained", sharey=True)
    for axes, (layer, head) in zip(panels, SHOWN, strict=True):
        axes.imshow(weights[layer][head].numpy(), cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(len(words)), words, rotation=90)
        axes.set_yticks(range(len(words)), words)
        axes.set_title(f"layer {layer}, head {head + 1}", fontsize=11)
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
    figure.suptitle("Where each word (left) looks (below)", fontsize=12)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("attention.png"))
