"""Find texts in another script than most texts. The script is that of most letters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from regard.data.check.collect import FindingCollector
from regard.data.check.rules.checked_row import CheckedRow
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
MAX_CHARACTERS = 500  # of a text that are used
MAX_PLACES = 50  # per script
MAX_RARE_FRACTION = 0.1  # a script with more texts than this is not reported
MIN_FREQUENT = 4  # texts in the main script for which a single text in another one is reported
MIN_LETTERS = 4


class ScriptRule:
    """Counts scripts separately for each role, because source and target may have different ones."""

    def __init__(self, collector: FindingCollector) -> None:
        self.collector = collector
        self.last_context = ""
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)  # texts of each script, by role
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
            self.counts[role][script] += 1
            places = self.places[role, script]
            if len(places) < MAX_PLACES:
                places.append((row.place, row.split, part))

    def finish(self) -> None:
        for role, counts in self.counts.items():
            (main, main_count), *others = counts.most_common()
            for name, count in others:
                is_rare = count <= MAX_RARE_FRACTION * main_count or (count == 1 and main_count >= MIN_FREQUENT)
                if is_rare and not {main, name} <= {"Han", "Japanese kana"}:
                    self._add_rare(role, main, name, count)

    def _add_rare(self, role: str, main: str, name: str, count: int) -> None:
        message = f"the {role} is written in {name}, most others are in {main}"
        places = self.places[role, name]
        for number, (place, split, text) in enumerate(places):
            rows = count - len(places) + 1 if number == 0 else 1  # the first one also counts rows without a place
            self.collector.add("other-script", place, message, text=text, split=split, key=f"{role} {name}", count=rows)


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
