"""Names that look like one: the same but for case and signs, or a rare one a slip away from a frequent one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

SIGNS = re.compile(r"[\W_]+")
NEGATED = ("a", "un", "in", "im", "il", "ir", "no", "dis", "non")
COMPARED = 400  # names; every rare one is compared with every frequent one


def plain(name: str) -> str:
    """A name without case, signs and spaces."""
    return SIGNS.sub("", unicodedata.normalize("NFKC", name).casefold())


def similar_names(counts: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """The rarer name, the more frequent one, and how they are alike."""
    order = sorted(counts, key=lambda name: (-counts[name], name))
    heads: dict[str, str] = {}
    rest: list[str] = []
    for name in order:
        folded = plain(name)
        if folded and folded in heads and _differ_in_signs_only(name, heads[folded]):
            yield name, heads[folded], "is but for case, space or signs"
        else:
            heads.setdefault(folded, name)
            rest.append(name)
    for number, rare in enumerate(rest[:COMPARED]):
        for frequent in rest[:number]:
            if _rarer(counts[rare], counts[frequent]) and slip(plain(rare), plain(frequent)):
                yield rare, frequent, "is one slip away from"
                break


def _differ_in_signs_only(one: str, other: str) -> bool:
    """Signs can be all that tells two names apart: "c" and "c++", "1.0" and "10", "-1" and "1"."""
    if one.strip().casefold() == other.strip().casefold():
        return True
    meant = any(one.count(sign) != other.count(sign) for sign in "+#*")
    return len(plain(one)) > 1 and not meant and not plain(one).isdigit()


def _rarer(count: int, other: int) -> bool:
    return count * 3 <= other or (count == 1 and other >= 2)


def slip(one: str, other: str) -> bool:
    """Whether one letter was left out, added, mistaken or swapped with its neighbour; two in a long name."""
    longest = max(len(one), len(other))
    if longest < 4 or abs(len(one) - len(other)) > 2 or one.isdigit() or other.isdigit():
        return longest == 3 and len(one) == len(other) and one != other and sorted(one) == sorted(other)
    if re.sub(r"\d", "", one) == re.sub(r"\d", "", other):
        return False  # numbered on purpose
    if any(prefix + one == other or prefix + other == one for prefix in NEGATED):
        return False  # "typical" and "atypical"
    return distance(one, other) <= (2 if longest >= 9 else 1)


def distance(one: str, other: str) -> int:
    """Edits from one to the other, a swap of neighbours being one."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        here = [row]
        for column, wanted in enumerate(other, 1):
            cost = min(last[column] + 1, here[-1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted:
                cost = min(cost, before[column - 2] + 1)
            here.append(cost)
        before, last = last, here
    return last[-1]
