"""Words that stay out of the code and the documentation, because readers of other projects would not use them.

Names and prose use the vocabulary of PyTorch, transformers and scikit-learn: `weight_decay`, not `decay`;
"from scratch", not "from nothing"; "fix", not "mend".
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORD_LISTS = {"sentences.py"}  # holds English function words
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if path.name not in WORD_LISTS)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# Variables, functions and classes are named after what they hold.
NAMES = {
    *("told", "said", "held", "kept", "found", "given", "fresh", "drawn", "wanted", "usual", "mend", "bend", "strand"),
    *("strands", "room", "rooms", "verb", "verbs", "anew", "alike", "heard", "nobody", "likeliest", "outcome", "begun"),
    *("asked", "two_sided", "labelled"),
}
# Anywhere in code, docstrings, messages and pages.
WORDS = (
    *("mend", "mends", "mended", "anew", "nobody", "likeliest", "seldom", "thereof", "lest", "whilst", "heed"),
    *("from nothing", "unless told", "out of nothing", "as it comes", "a text of yours", "the house", "data doctor"),
    *("verb", "verbs", "strands", "goes into them", "how long their squares are"),
    # American spelling
    *("normalise", "normalised", "recognise", "recognised", "neighbour", "neighbours", "centre", "centres", "colour"),
    *("initialise", "initialised", "labelled", "labelling", "behaviour", "organisation", "favour", "licence"),
)
PATTERN = re.compile(rf"(?<![\w-])({'|'.join(WORDS)})(?![\w-])", re.IGNORECASE)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def names(path: Path) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def test_names_say_what_they_hold() -> None:
    banned = {
        str(path.relative_to(ROOT)): sorted(used)
        for path in SOURCES
        if (used := {name for name in names(path) if name.strip("_").lower() in NAMES})
    }
    assert banned == {}


@pytest.mark.parametrize("paths", [SOURCES, PAGES], ids=["src", "docs"])
def test_prose_uses_ordinary_words(paths: list[Path]) -> None:
    banned = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":  # examples may hold sample texts of any kind
            text = CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
        for number, line in enumerate(text.splitlines(), start=1):
            banned += [f"{path.relative_to(ROOT)}:{number}: {word}" for word in PATTERN.findall(line)]
    assert banned == []
