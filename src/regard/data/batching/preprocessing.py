"""How a model turns texts into sequences of tokens: its tokenizer, and how long a sequence may be."""

from __future__ import annotations

from dataclasses import dataclass

from regard.config import Config
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Preprocessing:
    """The tokenizer of a network and the limits on its sequences.

    window: maximum number of tokens of a sequence; the network's own limit if None. Longer texts are split into
        overlapping windows.
    overlap: fraction of a window that the next window repeats.
    start: the token a decoder next to an encoder starts with, where the model folder names it.
    prefix: text that is put before every input, where a model expects it (T5).
    """

    tokenizer: Tokenizer
    config: Config
    window: int | None = None
    overlap: float = 0.25
    start: int | None = None
    prefix: str = ""

    @property
    def max_tokens(self) -> int | None:
        """Maximum number of tokens of a sequence; None for no limit."""
        limit = self.config.max_tokens
        if self.window is None or limit is None:
            return self.window or limit
        return min(self.window, limit)

    @property
    def segments(self) -> bool:
        """Whether the network has segment embeddings (first and second text, as BERT)."""
        return self.config.segments > 1
