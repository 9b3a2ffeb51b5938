"""Texts in another script or another language than the rest.

A script is seen in the letters. A language is guessed from its small words (the, der, los), which every longer text
has; texts without enough of them are not judged.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from regard.data.check.collect import FindingCollector
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.check.rules.minhash import WORD
from regard.data.records import Place

SCRIPTS = {
    "Latin": "A-Za-zÀ-ÖØ-öø-ɏ",
    "Greek": "Ͱ-Ͽἀ-῿",
    "Cyrillic": "Ѐ-ӿ",
    "Hebrew": "֐-׿",
    "Arabic": "؀-ۿݐ-ݿ",
    "Devanagari": "ऀ-ॿ",
    "Thai": "฀-๿",
    "Japanese kana": "぀-ヿ",
    "Han": "一-鿿㐀-䶿",
    "Hangul": "가-힯",
}
ONE_LETTER = {name: re.compile(f"[{letters}]") for name, letters in SCRIPTS.items()}
# Cyrillic and Latin letters in one word look alike and are not. (Greek among Latin is the phonetic alphabet.)
MIXED = re.compile(r"[A-Za-z]{2}[а-яё]|[A-Za-z][а-яё]+[A-Za-z]|[а-яё]{2}[A-Za-z]|[а-яё][A-Za-z]+[а-яё]", re.IGNORECASE)
# Words that two languages share are in both lists, so that neither wins by them; words of one
# letter are left out, for tables are full of them.
SMALL = {
    "English": """
        the and of to is was that it for with as this are be on not have he she they you his her but by were in
        my me we do did what who how at will can no so if or an there when all would had has one die from your
        their
    """,
    "Spanish": """
        el la los las que es un una unos de en no te me mi tu si por para con del al se lo le les su sus pero
        muy está más como este esta fue eso qué hay era ha he son ya yo nos sin todo ella él des también di uno
        dos tres porque cuando desde hasta
    """,
    "French": """
        le la les et est un une des de dans en pour que qui sur pas ne se du avec il elle nous vous sont ce
        cette mais au je tu me te si très plus on son sa ses par
    """,
    "German": """
        der die das und ist nicht ein eine einen zu den mit von auf sich für dem des auch es wird ich sie im in
        an war aber wir ihr er hat was so als
    """,
    "Italian": """
        il lo la le gli di che un una uno per non con del della dei sono ma anche nel questo più molto era alla
        al da se si mi ti su in ha io
    """,
    "Portuguese": """
        os as que um uma de do da dos das em no na não para com mas por muito está foi se me te eu você isso ele
        ela seu sua também mais como era
    """,
    "Dutch": """
        de het een en van dat die niet in is op te zijn met voor er aan ook maar bij ik je was heeft hij zij we
        naar wij deze om of als dan wat
    """,
    "Swedish": """
        och att det som en ett är på för av den de inte har jag om var hon han till vi kan från med mycket man
        så
    """,
    "Polish": """
        nie się jest że jak ale po tak za od przez był jego tylko dla już czy bardzo są być tego na do to co
    """,
    "Turkish": """
        ve bir bu için çok ile gibi daha ben mı değil ama kadar sonra olarak şey hiç olan da de ne var en
    """,
}
LANGUAGES = {name: set(words.split()) for name, words in SMALL.items()}
READ = 500  # characters of a text that are looked at
KEPT = 50  # places a script or a language is remembered with
RARE = 0.1  # share of the texts up to which another script or language is a stranger
FEW = 4  # texts of a kind from which on a single one of another is a stranger
LETTERS = 4


class LanguageRule:
    """Scripts and languages are counted for each role by itself: a source and its target differ by right."""

    def __init__(self, gather: FindingCollector) -> None:
        self.gather, self.context = gather, ""
        self.scripts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.languages: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.places: defaultdict[tuple[str, str], list[tuple[Place, str, str]]] = defaultdict(list)

    def check_row(self, row: CheckedRow) -> None:
        for role, text in row.texts:
            if role == "context":
                if text == self.context:
                    continue  # many questions have one context
                self.context = text
            part = text[:READ]
            script = script_of(part)
            if script is None:
                continue
            self._keep(self.scripts, role, script, row, part)
            if not part.isascii() and (match := MIXED.search(part)) is not None:
                what = f'"{_word(part, match)}" in the {role} mixes letters of two scripts'
                self.gather.add("mixed-script", row.place, what, text=part, split=row.split)
            if script == "Latin":
                language = language_of(part)
                if language is not None:
                    self._keep(self.languages, role, language, row, part)

    def _keep(self, counts: defaultdict[str, Counter[str]], role: str, name: str, row: CheckedRow, text: str) -> None:
        counts[role][name] += 1
        held = self.places[role, name]
        if len(held) < KEPT:
            held.append((row.place, row.split, text))

    def finish(self) -> None:
        for kind, counts in (("other-script", self.scripts), ("other-language", self.languages)):
            for role, found in counts.items():
                (usual, most), *others = found.most_common()
                for name, count in others:
                    if (count <= RARE * most or (count == 1 and most >= FEW)) and not {usual, name} <= {
                        "Han",
                        "Japanese kana",
                    }:
                        self._strangers(kind, role, usual, name, count)

    def _strangers(self, kind: str, role: str, usual: str, name: str, count: int) -> None:
        held = self.places[role, name]
        what = f"the {role} is {'written in' if kind == 'other-script' else ''} {name}, the others are {usual}"
        for number, (place, split, text) in enumerate(held):
            rest = count - len(held) + 1 if number == 0 else 1
            said = what.replace("is  ", "is ")
            self.gather.add(kind, place, said, text=text, split=split, key=f"{role} {name}", count=rest)


def script_of(text: str) -> str | None:
    """The script of most letters; None where there are hardly any."""
    if text.isascii():
        letters = sum(map(str.isalpha, text[:40])) >= LETTERS or sum(map(str.isalpha, text)) >= LETTERS
        return "Latin" if letters else None
    counts = {name: len(pattern.findall(text)) for name, pattern in ONE_LETTER.items()}
    most = max(counts, key=lambda name: counts[name])
    least = 2 if most in ("Han", "Hangul") else LETTERS
    if counts["Japanese kana"] and most == "Han":
        return "Japanese kana"
    return most if counts[most] >= least and counts[most] > 0.6 * sum(counts.values()) else None


def language_of(text: str) -> str | None:
    """A language whose small words the text has, where no other has more than half as many."""
    words = set(WORD.findall(text.casefold()))
    if len(words) < 6:
        return None
    hits = sorted(((len(small & words), name) for name, small in LANGUAGES.items()), reverse=True)
    (most, name), (second, _) = hits[0], hits[1]
    share = 0.4 if len(words) < 15 else 0.2  # a title or a name in a short text is not its language
    return name if most >= 3 and most >= share * len(words) and second * 2 <= most else None


def _word(text: str, match: re.Match[str]) -> str:
    start, end = match.span()
    while start and text[start - 1].isalpha():
        start -= 1
    while end < len(text) and text[end].isalpha():
        end += 1
    return text[start:end][:40]
