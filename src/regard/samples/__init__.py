"""Small data sets that come with the package, for trying things out: what each holds is told in README.md here."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from regard.errors import InputError, did_you_mean

FILES = {
    "messages": "messages.csv",
    "places": "places.conll",
    "questions": "questions.json",
    "english-spanish": "english-spanish.tsv",
    "corpus": "corpus.txt",
}
NAMES = tuple(FILES)


def path(name: str) -> Path:
    """The file of a sample, by its name in NAMES."""
    if name not in FILES:
        raise InputError(f'There is no sample "{name}".{did_you_mean(name, NAMES)}')
    return Path(str(resources.files(__name__) / FILES[name]))
