"""Tables of numbers with a word for each row and column: next-word predictions (T x V), attention weights (T x T)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.predict.plots.tables import heat_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regard.predict.model import Model

MAX_COLUMNS = 24  # words of a table of predictions, if they are not named


@dataclass(frozen=True, eq=False)
class WordTable:
    """A table: `str(table)` is its text, `table.draw()` its picture, `table["man", "dog"]` a number."""

    values: npt.NDArray[np.float32]  # (rows, columns)
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __str__(self) -> str:
        """Columns of numbers with two decimals; a dot is a number below 0.005."""
        left = max(len(name) for name in self.rows)
        widths = [max(len(name), 4) for name in self.columns]
        lines = [" ".join([" " * left, *(name.rjust(width) for name, width in zip(self.columns, widths, strict=True))])]
        for name, numbers in zip(self.rows, self.values.tolist(), strict=True):
            cells = [f"{number:.2f}" if abs(number) >= 0.005 else "." for number in numbers]
            row = [name.ljust(left), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))]
            lines.append(" ".join(row))
        return "\n".join(lines)

    def __getitem__(self, cell: tuple[str | int, str | int]) -> float:
        row, column = cell
        return float(self.values[_index(self.rows, row), _index(self.columns, column)])

    def draw(self, **options: Any) -> Axes:
        """The table as a heat map; `options` are those of `heat_map`."""
        return heat_map(self.values, self.rows, self.columns, **{"largest": 1.0, **options})


def _index(names: Sequence[str], name: str | int) -> int:
    if isinstance(name, int):
        return name
    if name not in names:
        raise InputError(f'"{name}" is not in the table. It has: {", ".join(names)}.')
    return names.index(name)


def prediction_table(model: Model, text: str, words: Sequence[str] | None = None) -> WordTable:
    """The probability of each word after each token of the text, for a language model.

    words: tokens of the vocabulary to show; by default those that are most probable anywhere in the text.

        print(prediction_table(model, "the man fed the"))
    """
    tokenizer = model.require_tokenizer()
    encoding = tokenizer.encode(text)
    logits = model.outputs([list(encoding.ids)])[0].logits
    if logits is None or logits.ndim != 2 or logits.shape[1] < tokenizer.size:
        raise InputError(f"this {model.family} model has no head that predicts words. Use a language model.")
    probabilities = logits.float().softmax(-1).cpu().numpy()
    ids = _columns(tokenizer, probabilities) if words is None else [_word_id(tokenizer, word) for word in words]
    return WordTable(probabilities[:, ids], _names(tokenizer, encoding.ids), _names(tokenizer, ids))


def weight_table(model: Model, text: str, *, layer: int = -1, head: int | None = None) -> WordTable:
    """Attention weights of one head, or the mean of all heads: how much each token (row) attends to each other."""
    weights = model.attention(text, layers=[layer], heads=None if head is None else [head])
    (matrix,) = weights.values()
    names = tuple(weights.tokens)
    return WordTable(matrix.float().mean(0).cpu().numpy(), names, names)


def _columns(tokenizer: Any, probabilities: npt.NDArray[np.float32]) -> list[int]:
    """The ids of the most probable words, in the order of the vocabulary."""
    special = set(tokenizer.special.values())
    best = [number for number in (-probabilities.max(0)).argsort(kind="stable").tolist() if number not in special]
    return sorted(best[:MAX_COLUMNS])


def _word_id(tokenizer: Any, word: str) -> int:
    number = tokenizer.backend.token_to_id(word)
    if number is None:
        raise InputError(f'"{word}" is not a token of the vocabulary. Give tokens as the tokenizer writes them.')
    return int(number)


def _names(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(tokenizer.backend.id_to_token(int(number)) or f"[{number}]" for number in ids)
