"""Find similar names: equal except for case and punctuation, or a rare name with a typo of a frequent one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

PUNCTUATION = re.compile(r"[\W_]+")
NEGATIONS = ("a", "un", "in", "im", "il", "ir", "no", "dis", "non")
MAX_COMPARED = 400  # names; every rare name is compared with every frequent one


def normalize_name(name: str) -> str:
    """A name in lowercase without punctuation and spaces."""
    return PUNCTUATION.sub("", unicodedata.normalize("NFKC", name).casefold())


def similar_names(counts: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """(rare name, frequent name, relation) for each name that is similar to a more frequent one."""
    order = sorted(counts, key=lambda name: (-counts[name], name))
    first_names: dict[str, str] = {}  # by normalized name
    distinct: list[str] = []
    for name in order:
        normalized = normalize_name(name)
        if normalized and normalized in first_names and _is_variant(name, first_names[normalized]):
            yield name, first_names[normalized], "differs only in case, spaces or punctuation from"
        else:
            first_names.setdefault(normalized, name)
            distinct.append(name)
    for number, rare in enumerate(distinct[:MAX_COMPARED]):
        for frequent in distinct[:number]:
            if _is_rare(counts[rare], counts[frequent]) and is_typo(normalize_name(rare), normalize_name(frequent)):
                yield rare, frequent, "is probably a typo of"
                break


def _is_variant(a: str, b: str) -> bool:
    """True unless punctuation distinguishes the names, as in "c" and "c++", "1.0" and "10", "-1" and "1"."""
    if a.strip().casefold() == b.strip().casefold():
        return True
    is_distinct = any(a.count(sign) != b.count(sign) for sign in "+#*")
    return len(normalize_name(a)) > 1 and not is_distinct and not normalize_name(a).isdigit()


def _is_rare(count: int, frequent_count: int) -> bool:
    return count * 3 <= frequent_count or (count == 1 and frequent_count >= 2)


def is_typo(a: str, b: str) -> bool:
    """True if one letter is missing, added, replaced or swapped with its neighbor; two in a long name."""
    max_length = max(len(a), len(b))
    if max_length < 4 or abs(len(a) - len(b)) > 2 or a.isdigit() or b.isdigit():
        return max_length == 3 and len(a) == len(b) and a != b and sorted(a) == sorted(b)
    if re.sub(r"\d", "", a) == re.sub(r"\d", "", b):
        return False  # "class1" and "class2"
    if any(prefix + a == b or prefix + b == a for prefix in NEGATIONS):
        return False  # "typical" and "atypical"
    return edit_distance(a, b) <= (2 if max_length >= 9 else 1)


def edit_distance(a: str, b: str) -> int:
    """Number of edits from `a` to `b`; swapping two neighbors is one edit (Damerau, 1964)."""
    row_before_last: list[int] = []
    last_row = list(range(len(b) + 1))
    for i, letter_a in enumerate(a, 1):
        row = [i]
        for j, letter_b in enumerate(b, 1):
            cost = min(last_row[j] + 1, row[-1] + 1, last_row[j - 1] + (letter_a != letter_b))
            if i > 1 and j > 1 and letter_a == b[j - 2] and a[i - 2] == letter_b:
                cost = min(cost, row_before_last[j - 2] + 1)
            row.append(cost)
        row_before_last = last_row
        last_row = row
    return last_row[-1]
