"""Errors of comparisons: the call, the type of the error, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import samples
from regard.comparison.evaluate_models import evaluate_models, model_names
from regard.comparison.state import read_results
from regard.errors import FolderError, InputError


@dataclass
class Files:
    """What the calls are about."""

    data: Path  # two classes, "warm" and "cold"
    good: Path  # a model for them
    folder: Path  # empty but for these:

    @property
    def one_class(self) -> Path:
        path = self.folder / "one.csv"
        path.write_text("text,label\n" + "".join(f"row {number},same\n" for number in range(50)), encoding="utf-8")
        return path

    def model(self, name: str) -> Path:
        """A model that n-grams make of a sample."""
        regard.train(samples.path(name), preset="ngram", out=self.folder / name)
        return self.folder / name


@pytest.fixture
def files(two_classes: Path, trained: dict[str, Path], tmp_path: Path) -> Files:
    return Files(two_classes, trained["good"], tmp_path)


def compared(*models: Any, **settings: Any) -> Callable[[Files], Any]:
    return lambda files: regard.compare(files.data, models=models, **settings)


ERRORS: list[tuple[Callable[[Files], Any], type[Exception], str]] = [
    (compared("tinny-bert"), InputError, 'Did you mean "tiny-bert"'),
    (compared(), InputError, "expected names of models"),
    (compared("tiny-bert", "tiny-bert"), InputError, "named twice"),
    (compared("ngram,static"), InputError, "Separate names with blanks: ngram static"),
    (compared("bert-base-uncased"), InputError, "start:bert-base-uncased"),
    (compared("tiny-gpt2", steps=1), InputError, r"no model could be compared\. tiny-gpt2: "),
    (compared("tiny-bert", seeds=0), InputError, "seeds is 0"),
    (compared("tiny-bert", test_fraction=1.5), InputError, "test_fraction is 1.5"),
    (compared("tiny-bert", metric="acuracy"), InputError, 'Did you mean "accuracy"'),
    (compared("tiny-bert", metric="bleu"), InputError, '"bleu" is not a score'),
    (compared("tiny-bert", columns={"group": "book"}), regard.DataError, "book"),
    (
        compared("ngram", columns={"text": "text", "label": "label", "group": "author"}, test_fraction=0.01),
        InputError,
        "240 rows in 3 groups cannot be divided",
    ),
    *((compared("ngram", time=time), InputError, "expected a duration") for time in ("", "soon", "-3m", "0", "3d")),
    (
        lambda files: regard.compare(files.data, models=["ngram"], test=files.data),
        InputError,
        "240 of 240 test rows are also in the training data",
    ),
    (lambda files: regard.compare(files.one_class, models=["ngram"]), InputError, "one label only"),
    (
        lambda files: regard.compare(samples.path("places"), models=["probe"]),
        InputError,
        "the baseline probe is for classify, pair, but the task is tag",
    ),
    (
        lambda files: regard.compare(samples.path("places"), models=[files.good]),
        InputError,
        "good is a model for classify, but the data is for tag",
    ),
    (
        lambda files: regard.compare(samples.path("messages"), models=[files.good]),
        InputError,
        "good and the data have different labels.*Only in the data:",
    ),
    (lambda files: read_results(files.folder), FolderError, r"has no results\.json"),
    (lambda files: model_names([]), InputError, "no model"),
    (
        lambda files: evaluate_models([files.good], files.data, slices=["writer"]),
        InputError,
        r'no column "writer" in .*columns: text, label, author',
    ),
    (lambda files: evaluate_models([files.good], files.data, metric="bleu"), InputError, '"bleu" is not a score'),
    (
        lambda files: evaluate_models([files.good, files.model("messages")], files.data),
        InputError,
        'Only in messages: "account".*Only in good: "cold", "warm"',
    ),
    (
        lambda files: evaluate_models([files.good, files.model("places")], files.data),
        InputError,
        r"good is a model for classify, but places is one for tag\.",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message[:60] for _, _, message in ERRORS])
def test_error(files: Files, call: Callable[[Files], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(files)
