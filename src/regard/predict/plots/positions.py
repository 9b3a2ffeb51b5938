"""Pictures of position encodings: the vectors of all positions, how similar they are, and the hands of sinusoids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.predict.plots.tables import BLUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from regard.predict.model import Model

WHY_NONE = {
    "none": "its config has no positions",
    "rotary": "it turns queries and keys instead (see draw_hands)",
    "relative": "it adds a number for each distance to the scores instead",
}


def position_vectors(model: Model, count: int | None = None) -> npt.NDArray[np.float32]:
    """The (positions, width) vectors that a model adds to its token embeddings, learned or sinusoidal.

    position_vectors(regard.load("minilm"), 128).shape  # (128, 384)
    """
    from regard.config import ModelConfig
    from regard.model.embeddings import Embeddings

    parts = [part for part in model.network.modules() if isinstance(part, Embeddings)]
    for part in parts:
        table = part.table if part.places is None else part.places.weight[part.offset :]
        if table is not None:
            return np.asarray(table[:count].detach().float().cpu())
    kind = model.config.positions.kind if isinstance(model.config, ModelConfig) else "none"
    raise InputError(f"this model adds no position vectors: {WHY_NONE.get(kind, f'its positions are {kind}')}.")


def draw_positions(vectors: Any, *, title: str = "position vectors") -> Figure:
    """Draw position vectors as a map, and beside it the cosine similarity of each pair of positions.

    vectors: numbers of shape (positions, width), as a tensor or an array, such as `position_vectors(model, 128)` or
    `regard.model.positions.sinusoidal(64, 32)`.
    """
    from matplotlib import pyplot

    values = _table(vectors)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    units = values / np.maximum(lengths, 1e-12)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.4, 1), layout="constrained")
    top = float(np.quantile(np.abs(values), 0.99)) or 1.0
    image = left.imshow(values.T, cmap="RdBu", vmin=-top, vmax=top, aspect="auto", interpolation="nearest")
    left.set(xlabel="position", ylabel="dimension")
    left.set_title(title, fontsize=10)
    figure.colorbar(image, ax=left, fraction=0.04)
    image = right.imshow(units @ units.T, cmap="RdBu", vmin=-1, vmax=1, interpolation="nearest")
    right.set(xlabel="position", ylabel="position")
    right.set_title("cosine similarity", fontsize=10)
    figure.colorbar(image, ax=right, fraction=0.04)
    return figure


def draw_hands(
    vectors: Any, *, hands: Sequence[int] = (0, 2, 4), positions: Sequence[int] = range(5), ax: Axes | None = None
) -> Axes:
    """Draw pairs of dimensions (sine, cosine) of sinusoidal positions as hands that turn from position to position.

    vectors: `regard.model.positions.sinusoidal(positions, width)`; hand `n` is dimensions 2 n and 2 n + 1.
    """
    values = _table(vectors)
    for name, numbers, limit in (("hand", hands, values.shape[1] // 2), ("position", positions, len(values))):
        if not numbers or min(numbers) < 0 or max(numbers) >= limit:
            raise InputError(f"{name}s {list(numbers)} were given; expected numbers from 0 to {limit - 1}.")
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(2.2 * len(hands), 2.4), layout="constrained")[1]
    for place, hand in enumerate(hands):
        start = 2.8 * place
        for step, position in enumerate(positions):
            y, x = values[position, 2 * hand : 2 * hand + 2].tolist()
            ax.plot([start, start + x], [0, y], color=BLUE, alpha=(step + 1.5) / (len(positions) + 0.5), linewidth=2)
            ax.annotate(str(position), (start + 1.16 * x, 1.16 * y), ha="center", va="center", fontsize=8)
        ax.annotate(f"hand {hand}", (start, -1.5), ha="center", va="center", fontsize=9)
    ax.set(aspect="equal", xlim=(-1.4, 2.8 * len(hands) - 1.4), ylim=(-1.7, 1.4))
    ax.axis("off")
    return ax


def _table(vectors: Any) -> npt.NDArray[np.float64]:
    values = np.asarray(vectors.detach().cpu() if hasattr(vectors, "detach") else vectors, dtype=float)
    if values.ndim != 2 or not values.size:
        raise InputError(f"position vectors of shape {values.shape} were given, expected (positions, width).")
    return values
