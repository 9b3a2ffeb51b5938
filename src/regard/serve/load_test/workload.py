"""The requests of a load test: bodies with texts of a file, or with random words of log-normal lengths."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import InputError, setting

_COMMON = (
    "the of and a to in is it was for on with as his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some "
    "so these would other into has more her two like him see time could no make than first been its who now "
    "people my made over did down only way find use may water long little very after words called just where "
    "most know"
)  # one token each in almost every vocabulary
WORDS = _COMMON.split()
FIELDS = {"/generate": "prompt", "/v1/embeddings": "input"}  # of the text; "text" for other routes


@dataclass(frozen=True)
class Workload:
    """What is sent: to which route, which texts or how long they are, and further fields of the body."""

    route: str = "/embed"
    texts: Sequence[str] = ()  # in random order; random words if empty
    mean_tokens: float = 24.0
    sigma: float = 0.6  # of the logarithm of the length
    fields: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if not self.route.startswith("/"):
            raise InputError(f'{setting("route")} is "{self.route}", expected one such as /embed.')
        if not self.mean_tokens >= 1 or not 0 <= self.sigma <= 3:
            raise InputError(
                f"{setting('mean_tokens')} is {self.mean_tokens:g} and {setting('sigma')} {self.sigma:g}; expected at "
                "least 1, and 0 to 3."
            )

    def bodies(self, seed: int) -> Iterator[bytes]:
        """Bodies without end, the same for the same seed."""
        rng = random.Random(seed)
        field = FIELDS.get(self.route, "text")
        while True:
            text = rng.choice(self.texts) if self.texts else self._words(rng)
            yield json.dumps({field: text, **dict(self.fields)}).encode()

    def _words(self, rng: random.Random) -> str:
        """Random words; the mean of their number is `mean_tokens`."""
        center = math.log(self.mean_tokens) - self.sigma**2 / 2
        count = max(1, round(rng.lognormvariate(center, self.sigma)))
        return " ".join(rng.choices(WORDS, k=count))


def read_texts(path: Path) -> list[str]:
    """The lines of a file that are not empty."""
    try:
        texts = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--texts {path} cannot be read ({error}). Give a text file, one text per line.") from error
    if not texts:
        raise InputError(f"--texts {path} has no text. Write one per line.")
    return texts
