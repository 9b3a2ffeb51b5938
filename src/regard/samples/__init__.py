"""Small data sets bundled with the package, for trying out commands. README.md in this folder describes them."""

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
ABOUT = {
    "messages": "456 messages to a shop in 6 classes (CSV: text, label)",
    "places": "176 sentences with entities: LOC, PER, DATE, ORG (CoNLL, IOB2)",
    "questions": "188 questions over 63 passages, 39 without an answer (SQuAD 2.0)",
    "english-spanish": "332 sentences with their translation (TSV)",
    "corpus": "70 documents of plain text, 20,000 words, a blank line between documents",
}
TRY = {  # a first command for each sample
    "messages": "regard train {file} --out runs/messages",
    "places": "regard train {file} --out runs/places",
    "questions": "regard train {file} --out runs/questions",
    "english-spanish": "regard train {file} --preset gru-mini --out runs/english-spanish",
    "corpus": "regard pretrain {file} --preset bert-tiny --out runs/corpus",
}


def path(name: str) -> Path:
    """The path of a bundled sample. `name` is one of NAMES; raises InputError for other names.

    samples.path("messages").read_text()
    """
    if name not in FILES:
        raise InputError(f'There is no sample "{name}".{did_you_mean(name, NAMES)}')
    return Path(str(resources.files(__name__) / FILES[name]))
