"""Find texts in another script or language than most texts.

The script is that of most letters. The language is guessed from function words (the, der, los), which every longer
text has; for texts without enough of them no language is guessed.
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
# Cyrillic and Latin letters in one word: some look the same. (Greek letters in Latin words are phonetic symbols.)
MIXED = re.compile(r"[A-Za-z]{2}[а-яё]|[A-Za-z][а-яё]+[A-Za-z]|[а-яё]{2}[A-Za-z]|[а-яё][A-Za-z]+[а-яё]", re.IGNORECASE)
# Words of two languages are in both lists, so that they do not decide between them. Words of one letter are excluded,
# because tables have many of them.
FUNCTION_WORDS = {
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
LANGUAGES = {name: set(words.split()) for name, words in FUNCTION_WORDS.items()}
MAX_CHARACTERS = 500  # of a text that are used
MAX_PLACES = 50  # per script and language
MAX_RARE_FRACTION = 0.1  # a script or language with more texts than this is not reported
MIN_FREQUENT = 4  # texts in the main language for which a single text in another one is reported
MIN_LETTERS = 4


class LanguageRule:
    """Counts scripts and languages separately for each role, because source and target may have different ones."""

    def __init__(self, collector: FindingCollector) -> None:
        self.collector = collector
        self.last_context = ""
        self.scripts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.languages: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.places: defaultdict[tuple[str, str], list[tuple[Place, str, str]]] = defaultdict(list)

    def check_row(self, row: CheckedRow) -> None:
        for role, text in row.texts:
            if role == "context":
                if text == self.last_context:
                    continue  # several questions have the same context
                self.last_context = text
            part = text[:MAX_CHARACTERS]
            script = script_of(part)
            if script is None:
                continue
            self._count(self.scripts, role, script, row, part)
            if not part.isascii() and (match := MIXED.search(part)) is not None:
                message = f'"{_whole_word(part, match)}" in the {role} mixes letters of two scripts'
                self.collector.add("mixed-script", row.place, message, text=part, split=row.split)
            if script == "Latin":
                language = language_of(part)
                if language is not None:
                    self._count(self.languages, role, language, row, part)

    def _count(self, counts: defaultdict[str, Counter[str]], role: str, name: str, row: CheckedRow, text: str) -> None:
        counts[role][name] += 1
        places = self.places[role, name]
        if len(places) < MAX_PLACES:
            places.append((row.place, row.split, text))

    def finish(self) -> None:
        for role, counts in self.scripts.items():
            self._check_rare("other-script", role, counts)
        for role, counts in self.languages.items():
            self._check_rare("other-language", role, counts)

    def _check_rare(self, kind: str, role: str, counts: Counter[str]) -> None:
        (main, main_count), *others = counts.most_common()
        for name, count in others:
            is_rare = count <= MAX_RARE_FRACTION * main_count or (count == 1 and main_count >= MIN_FREQUENT)
            if is_rare and not {main, name} <= {"Han", "Japanese kana"}:
                self._add_rare(kind, role, main, name, count)

    def _add_rare(self, kind: str, role: str, main: str, name: str, count: int) -> None:
        phrase = "is written in" if kind == "other-script" else "is in"
        message = f"the {role} {phrase} {name}, most others are in {main}"
        places = self.places[role, name]
        for number, (place, split, text) in enumerate(places):
            rows = count - len(places) + 1 if number == 0 else 1  # the first one also counts rows without a place
            self.collector.add(kind, place, message, text=text, split=split, key=f"{role} {name}", count=rows)


def script_of(text: str) -> str | None:
    """The script of most letters; None if there are too few."""
    if text.isascii():
        enough = sum(map(str.isalpha, text[:40])) >= MIN_LETTERS or sum(map(str.isalpha, text)) >= MIN_LETTERS
        return "Latin" if enough else None
    counts = {name: len(pattern.findall(text)) for name, pattern in ONE_LETTER.items()}
    script = max(counts, key=lambda name: counts[name])
    min_letters = 2 if script in ("Han", "Hangul") else MIN_LETTERS
    if counts["Japanese kana"] and script == "Han":
        return "Japanese kana"
    is_clear = counts[script] >= min_letters and counts[script] > 0.6 * sum(counts.values())
    return script if is_clear else None


def language_of(text: str) -> str | None:
    """The language with most function words in the text; None if there are too few, or another has half as many."""
    words = set(WORD.findall(text.casefold()))
    if len(words) < 6:
        return None
    counts = sorted(((len(listed & words), name) for name, listed in LANGUAGES.items()), reverse=True)
    best, name = counts[0]
    second_best, _ = counts[1]
    min_fraction = 0.4 if len(words) < 15 else 0.2  # a short text may contain a name or title in another language
    is_clear = best >= 3 and best >= min_fraction * len(words) and second_best * 2 <= best
    return name if is_clear else None


def _whole_word(text: str, match: re.Match[str]) -> str:
    start, end = match.span()
    while start and text[start - 1].isalpha():
        start -= 1
    while end < len(text) and text[end].isalpha():
        end += 1
    return text[start:end][:40]
