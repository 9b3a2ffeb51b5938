"""Sentence boundaries, by rules for abbreviations, initials, numbers, quotes and ellipses.

A mark (. ! ? …) with its closing quotes or brackets ends a sentence if space follows and the next character can start a
sentence. A period does not end a sentence after a title ("Dr."), an initial ("J. K. Rowling") or the number of a list
("1."). After an abbreviation that can be the last word of a sentence ("U.S.", "etc.", "p.m."), it ends one only before
a word that starts sentences far more often than names ("The", "However").
"""

from __future__ import annotations

import re

Span = tuple[int, int]

OPENING = "\"'“‘«„‹([{¿¡*_—"
# A mark, closing quotes or brackets, and the first character after the space.
_MARK = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»›)\]}*_]*+(?=\s++(\S))|(?<![。！？])[。！？]++[」』”’)）]*+(?=\s*+(\S))")
_TEXT = re.compile(r"\S")
_NUMBER = re.compile(r"[(\[]?(?:\d{1,3}|[ivxIVX]{1,5}|[A-Za-z])")
_LETTERS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_LINES = re.compile(r"[^\n]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations that are followed by the word they belong to, so they do not end a sentence.
NEVER_LAST = _words(
    "mr mrs ms mx dr prof st mt ft rev hon gen col maj capt lt sgt cmdr adm gov sen rep pres supt messrs mme mlle "
    "fr br vs v cf viz ca c al approx fig figs eq eqs ch sect vol vols ed eds trans pp p par art nos "
    "e.g i.e eg ie a.k.a bzw z.b d.h u.a sra srta dra"
)
# Abbreviations that may also be the last word of a sentence: the next word decides.
MAY_BE_LAST = _words(
    "etc inc ltd co corp bros llc plc jr sr esq no ave blvd rd dept univ assn est min max hr hrs sec "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun "
    "ph.d m.d b.a m.a b.sc m.sc a.m p.m a.d b.c"
)
BEGINNERS = _words(
    "the a an this that these those it its he she they we you i his her their our my your there here in on at by for "
    "from with without to of as if when while after before since although though because however but and or so yet "
    "then thus therefore moreover furthermore meanwhile also both each some many most all no not nobody nothing what "
    "who why how where which one two during under over between among until once another such even just only"
)


def sentence_spans(text: str, *, lines: bool = False) -> list[Span]:
    """Start and end of each sentence in code points, end exclusive; they cover the text except the space between.

    With `lines` a line break always ends a sentence (one paragraph per line); otherwise it counts as a space.
    """
    if not lines:
        return _spans(text, 0, len(text))
    return [span for line in _LINES.finditer(text) for span in _spans(text, line.start(), line.end())]


def split_sentences(text: str, *, lines: bool = False) -> list[str]:
    """The sentences themselves."""
    return [text[start:end] for start, end in sentence_spans(text, lines=lines)]


def _spans(text: str, begin: int, end: int) -> list[Span]:
    spans: list[Span] = []
    first = _TEXT.search(text, begin, end)
    if first is None:
        return spans
    start = first.start()
    for mark in _MARK.finditer(text, start, end):
        following = mark.start(mark.lastindex or 0)
        if _ends(text, start, mark, following):
            spans.append((start, mark.end()))
            start = following
    return [*spans, (start, begin + len(text[begin:end].rstrip()))]


def _ends(text: str, start: int, mark: re.Match[str], following: int) -> bool:
    """Whether the sentence that began at `start` ends with this mark; `following` is the next non-space."""
    if text[following].islower():
        return False
    after = text[following : following + 24].lstrip(OPENING)
    if not after or not (after[0].isalnum() or after[0] in "$£€#@&§…"):
        return False
    if after[0].islower():
        return False
    if mark[0] != "." or text[mark.start()] != ".":
        return True
    return not _abbreviated(text, start, mark.start(), after)


def _abbreviated(text: str, start: int, period: int, after: str) -> bool:
    """Whether the period belongs to the word before it and does not end the sentence."""
    parts = text[max(start, period - 24) : period].split()
    last_word = parts[-1] if parts and not text[period - 1].isspace() else ""
    word, word_start = last_word.lstrip(OPENING), period - len(last_word)
    if word_start == start and _NUMBER.fullmatch(word):
        return True  # the number of a list
    plain = word.casefold()
    if plain in NEVER_LAST:
        return True
    if len(word) == 1 and word.isalpha():
        return _initial(text, start, word_start, word)
    if plain in MAY_BE_LAST or _LETTERS.fullmatch(word):
        return after[0].isdigit() or _next_word(after) not in BEGINNERS
    return False


def _initial(text: str, start: int, word_start: int, letter: str) -> bool:
    """A single letter is an initial after a name or another initial; "plan B." and "So did I." end a sentence."""
    before = text[max(start, word_start - 24) : word_start].split()
    if not before:
        return True
    last = before[-1].lstrip(OPENING)
    if last.endswith(".") and len(last) <= 3:
        return True
    return letter.isupper() and letter != "I" and last[:1].isupper()


def _next_word(after: str) -> str:
    first_word = re.match(r"[^\W\d_]*", after)
    return first_word[0].casefold() if first_word else ""
