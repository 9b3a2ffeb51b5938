"""Clean text for pretraining: articles and books, without leftovers of markup, with documents kept apart.

    python benchmarks/prepare_corpus.py --articles wikipedia.txt.xz --books novels.txt.xz books.txt.xz --out corpus

A blank line separates documents in the files that are read (plain, .gz or .xz) and in those that are written:
`articles.txt` and `books.txt` to train on, `articles-held-out.txt` and `books-held-out.txt` to evaluate on. What was
left out, and why, is printed as JSON.

Articles lose tables, template code, lists of short lines, paragraphs with `formula_1` in place of a formula, empty
parentheses and headings without text. Books lose wrapped lines (joined to paragraphs) and tables of contents, and are
cut into chapters. A paragraph that occurred before is left out wherever it occurs again.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import lzma
import multiprocessing
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

MIN_DOCUMENT = 600  # characters: shorter documents are stubs, lists or front matter
MIN_REPEATED = 100  # characters of a paragraph from which a second occurrence is no coincidence
MIN_LETTERS = 0.75  # letters and spaces as a fraction of a paragraph of prose; tables and references have fewer
MAX_FOREIGN = 0.15  # letters beyond Latin as a fraction of a paragraph
MAX_HEADING = 60  # characters
MAX_FRAGMENT = 60  # characters of a line without an end mark that is an item of a list, not a sentence
MAX_WIDTH = 100  # characters of the longest lines of a book whose lines were wrapped

# Plain searches: a regular expression of all of them takes a second for each megabyte.
MARKUP = (
    *("{{", "}}", "[[", "]]", "||", "/>", "|-", "http://", "https://", "File:", "Image:", "Category:", "ISBN"),
    *("style=", "class=", "align=", "colspan", "rowspan", "width=", "bgcolor"),
)
FIRST_MARKS = "|!*#:;="  # of lines of tables, templates and lists
LAST_MARKS = "|{};="  # of lines of code
TAG = re.compile(r"</?[a-z]")
CODE = re.compile(r"\w_\w|\w\(\)")
NOT_LETTERS = re.compile(r"[^\w ]|[\d_]")
FOREIGN = re.compile(r"[^\u0000-\u024f\W\d_]")
EMPTY_PARENTHESES = re.compile(r"\s*\((?:\s|[,;:/–-]|\b(?:or|and|pronounced|listen)\b)*\)")
LOST_SOUNDS = re.compile(r"\(\s*(?:[;,\]]\s*)+")  # where the pronunciation of a name was
SPACE_BEFORE_MARK = re.compile(r" +(?=[,;.)])")
SPACES = re.compile(r" {2,}|[\t\u00a0\u2009\u200a\u200b\u202f]+")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ufffd]")
END_MARK = re.compile(r"[.!?:;][\"”’')\]]*$")
NUMBER = r"(?:[ivxlc]+|\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|\w+teen|twenty\S*|\w+th|first)"
CHAPTER = re.compile(rf"^(?:(?:chapter|book|volume|vol\.|part|letter|canto)\s+(?:the\s+)?{NUMBER}\b|[IVXL]+\.?$)", re.I)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, nargs="*", default=[], help="files of encyclopedia articles")
    parser.add_argument("--books", type=Path, nargs="*", default=[], help="files of books, or of their chapters")
    parser.add_argument("--out", type=Path, required=True, help="folder for the four files")
    parser.add_argument("--hold-out-articles", type=int, default=200, help="articles to evaluate on")
    parser.add_argument("--hold-out-books", type=int, default=3, help="whole documents of the first file of --books")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    seen: set[bytes] = set()
    rng = random.Random(args.seed)

    articles = []
    with multiprocessing.Pool() as pool:
        found = (lines for path in args.articles for lines in documents(path))
        for text, left_out in pool.imap(article, found, chunksize=64):
            articles.append(text)
            counts.update(left_out)
    articles = without_repeats(articles, seen, counts)
    held = set(rng.sample(range(len(articles)), min(args.hold_out_articles, len(articles) // 2)))
    write(args.out / "articles.txt", [one for number, one in enumerate(articles) if number not in held], counts)
    write(args.out / "articles-held-out.txt", [articles[number] for number in sorted(held)], counts)

    books = [[list(lines) for lines in documents(path)] for path in args.books]
    count = min(args.hold_out_books, len(books[0]) // 2) if books else 0
    chosen = set(rng.sample(range(len(books[0])), count)) if books else set()
    kept = [one for part, file in enumerate(books) for number, one in enumerate(file) if part or number not in chosen]
    for name, group in (("books", kept), ("books-held-out", [books[0][number] for number in sorted(chosen)])):
        chapters = [chapter for lines in group for chapter in book(lines, counts)]
        write(args.out / f"{name}.txt", without_repeats(chapters, seen, counts), counts)
    print(json.dumps(dict(sorted(counts.items())), indent=1))


def documents(path: Path) -> Iterator[list[str]]:
    """The lines of each document."""
    lines: list[str] = []
    with opened(path) as file:
        for line in file:
            if line.strip():
                lines.append(line)
            elif lines:
                yield lines
                lines = []
    if lines:
        yield lines


def opened(path: Path) -> TextIO:
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8")
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def tidy(line: str) -> str:
    """One space between words, no control characters, no HTML entities."""
    return SPACES.sub(" ", CONTROLS.sub(" ", html.unescape(line))).strip()


def article(found: Sequence[str]) -> tuple[list[str], Counter[str]]:
    """The title and the paragraphs of prose of an article, with the headings that have text; what was left out."""
    counts: Counter[str] = Counter()
    lines = [tidy(line) for line in found]
    kept = [lines[0]]
    for line in lines[1:]:
        if not line:
            continue
        reason = why_not_prose(line)
        if reason:
            counts[f"article lines: {reason}"] += 1
            continue
        kept.append(without_gaps(line))
    following = [*kept[1:], ""]
    with_text = [
        line
        for number, (line, after) in enumerate(zip(kept, following, strict=True))
        if number == 0 or not is_heading(line) or (after and not is_heading(after))
    ]
    counts["article lines: heading without text"] += len(kept) - len(with_text)
    return with_text, counts


def without_gaps(line: str) -> str:
    """A paragraph without what is left around a word that was removed."""
    if "(" in line:
        line = EMPTY_PARENTHESES.sub("", LOST_SOUNDS.sub("(", line))
    return SPACE_BEFORE_MARK.sub("", line)


def why_not_prose(line: str) -> str:
    """Why a line of an article is left out; empty if it is prose or a heading."""
    if "formula_" in line:
        return "formula placeholder"
    if is_markup(line):
        return "markup"
    if len(line) <= MAX_FRAGMENT and not END_MARK.search(line):
        return "item of a list"
    if is_heading(line):
        return ""
    if len(NOT_LETTERS.findall(line)) > (1 - MIN_LETTERS) * len(line):
        return "few letters"
    if not line.isascii() and len(FOREIGN.findall(line)) > MAX_FOREIGN * len(line):
        return "other alphabets"
    return ""


def is_markup(line: str) -> bool:
    """Whether a line has marks of tables, templates, tags or code."""
    if line[0] in FIRST_MARKS or line[-1] in LAST_MARKS:
        return True
    if any(mark in line for mark in MARKUP):
        return True
    if "<" in line and TAG.search(line):
        return True
    return ("_" in line or "()" in line) and bool(CODE.search(line))


def is_heading(line: str) -> bool:
    """Headings are written as short sentences without a verb: `Early life.`"""
    return len(line) <= MAX_HEADING and line.endswith(".") and len(line.split()) <= 8 and not re.search(r"[.!?] ", line)


def book(lines: Sequence[str], counts: Counter[str]) -> Iterator[list[str]]:
    """The chapters of a book, or of a document that is a chapter."""
    chapter: list[str] = []
    for line in paragraphs(lines):
        if len(line) <= MAX_HEADING and CHAPTER.search(line):
            yield chapter
            counts["chapter headings"] += 1
            chapter = []
            continue
        chapter.append(line.replace("_", ""))
    yield chapter


def paragraphs(lines: Sequence[str]) -> list[str]:
    """Wrapped lines joined: a line ends a paragraph where the first word of the next line would still have fit."""
    lines = [line for line in map(tidy, lines) if line]
    lengths = sorted(map(len, lines))
    width = lengths[int(0.95 * (len(lengths) - 1))] if lengths else 0
    if width > MAX_WIDTH:
        return list(lines)
    joined: list[str] = []
    open_line = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if open_line:
            joined[-1] += f" {line}"
        else:
            joined.append(line)
        first_word = after.split(" ", 1)[0]
        fits = len(line) + 1 + len(first_word) <= width
        open_line = bool(after) and not fits and not CHAPTER.search(after)
    return joined


def without_repeats(texts: Iterable[list[str]], seen: set[bytes], counts: Counter[str]) -> list[list[str]]:
    """Documents without the paragraphs that were seen before; those with little text left are left out."""
    kept = []
    for text in texts:
        fresh = []
        for paragraph in text:
            if len(paragraph) >= MIN_REPEATED:
                key = digest(paragraph)
                if key in seen:
                    counts["repeated paragraphs"] += 1
                    continue
                seen.add(key)
            fresh.append(paragraph)
        if sum(map(len, fresh)) < MIN_DOCUMENT:
            counts["short documents"] += bool(fresh)
            continue
        kept.append(fresh)
    return kept


def digest(paragraph: str) -> bytes:
    """The same for paragraphs that differ in case and spaces only."""
    return hashlib.blake2b("".join(paragraph.lower().split()).encode(), digest_size=12).digest()


def write(path: Path, texts: Sequence[list[str]], counts: Counter[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for text in texts:
            file.write("\n".join(text) + "\n\n")
            counts[f"{path.name}: words"] += sum(len(line.split()) for line in text)
    counts[f"{path.name}: documents"] = len(texts)


if __name__ == "__main__":
    main()
