"""Analogy files in Google's format: sections start with a colon; a question is four words, a is to b as c is to d."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

from regard.errors import DataError, pluralize
from regard.text.text_files import read_chunks

Question = tuple[str, str, str, str]


def read_analogies(path: str | Path) -> dict[str, list[Question]]:
    """Questions by section. A line of two words is a pair; every two pairs of a section make a question."""
    sections: dict[str, list[Question]] = {}
    pairs: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for number, line in enumerate("".join(read_chunks([path])).splitlines(), 1):
        words = line.split()
        if line.startswith(":"):
            name = line[1:].strip()
        elif len(words) == 4:
            sections.setdefault(name, []).append((words[0], words[1], words[2], words[3]))
        elif len(words) == 2:
            pairs.setdefault(name, []).append((words[0], words[1]))
        elif words:
            raise DataError(
                f"has {pluralize(len(words), 'word')}",
                file=str(path),
                line=number,
                expected="four words, a pair, or a section name after a colon",
                fix="Write phrases with _ instead of a space.",
            )
    for section, section_pairs in pairs.items():
        sections.setdefault(section, []).extend((*first, *second) for first, second in permutations(section_pairs, 2))
    if not sections:
        raise DataError("has no question", file=str(path), expected="lines of four words")
    return sections
