"""Words that stay out of the code and the documentation, each group with the reason why.

Names and prose use the vocabulary of PyTorch, transformers and scikit-learn, so that their users need not translate.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# Variables, functions and classes with these names are refused.
NAMES = {
    "It says how a value came about, not what it is: `found` is `matches`, `given` is `settings`.": (
        *("told", "said", "held", "kept", "found", "given", "drawn", "wanted", "asked", "heard", "begun", "fresh"),
    ),
    "It is a metaphor for something that has a usual name: activation, chunk, capacity, fix, result, command.": (
        *("bend", "strand", "strands", "room", "rooms", "mend", "outcome", "verb", "verbs"),
    ),
    "The usual name is another one: bidirectional, equal, most likely.": ("two_sided", "alike", "likeliest", "usual"),
}
# These are refused anywhere in code, docstrings, messages and pages.
WORDS = {
    "PyTorch and transformers call it another way: fix, from scratch, again, command, chunks, rarely.": (
        *("mend", "mends", "mended", "from nothing", "out of nothing", "anew", "verb", "verbs", "strands", "seldom"),
    ),
    "Readers whose first language is not English know a simpler word.": (
        *("thereof", "lest", "whilst", "heed", "likeliest"),
    ),
    "The API has American spelling, and a search should find every place.": (
        *("normalise", "normalised", "initialise", "initialised", "recognise", "recognised", "organisation"),
        *("neighbour", "neighbours", "centre", "centres", "colour", "behaviour", "favour", "licence"),
        *("labelled", "labelling"),
    ),
}
BANNED_NAMES = {name: reason for reason, group in NAMES.items() for name in group}
BANNED_WORDS = {word: reason for reason, group in WORDS.items() for word in group}
PATTERN = re.compile(rf"(?<![\w-])({'|'.join(BANNED_WORDS)})(?![\w-])", re.IGNORECASE)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def names(path: Path) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return {token.string.strip("_").lower() for token in tokens if token.type == tokenize.NAME}


def test_names_say_what_they_hold() -> None:
    banned = [
        f"{path.relative_to(ROOT)}: {name}. {BANNED_NAMES[name]}"
        for path in SOURCES
        for name in sorted(names(path) & BANNED_NAMES.keys())
    ]
    assert banned == []


@pytest.mark.parametrize("paths", [SOURCES, PAGES], ids=["src", "docs"])
def test_prose_uses_ordinary_words(paths: list[Path]) -> None:
    banned = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":  # examples may hold sample texts of any kind
            text = CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
        for number, line in enumerate(text.splitlines(), start=1):
            place = f"{path.relative_to(ROOT)}:{number}"
            banned += [f"{place}: {word}. {BANNED_WORDS[word.lower()]}" for word in PATTERN.findall(line)]
    assert banned == []
