"""JSON: an object a line, a list of objects, or SQuAD's articles. Nested files are read object by object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from regard.data.formats.lines import BOM, OnBadRow, Row, check_strings, read_lines, strip_line_end
from regard.data.records import Place
from regard.data.sources import LONGEST, PARTS, SPLITS, split_named, too_many_parts
from regard.errors import DataError

ESCAPED = re.compile(r"\\u(0000|[dD][89a-fA-F])")
SPACE = re.compile(r"\s*")
MANY_PARTS = f"is not JSON that can be read: one row has more than {PARTS:,} lists and objects"


def line_rows(stream: BinaryIO, name: str, bad: OnBadRow) -> Iterator[Row]:
    """JSON lines."""
    for number, line in read_lines(stream, name, bad):
        if not line.strip():
            continue
        place = Place(name, number)
        try:
            value = _object(line, place)
        except DataError as error:
            bad(error, line)
            continue
        yield Row(place, value, line)


def _object(line: str, place: Place) -> dict[str, Any]:
    if too_many_parts(line):
        raise place.error(MANY_PARTS)
    try:
        value = json.loads(strip_line_end(line))
        return _checked(value, place, escaped=ESCAPED.search(line) is not None)
    except json.JSONDecodeError as error:
        what = f"is not JSON: {error.msg}"
        raise place.error(what, column=str(error.colno), expected='an object such as {"text": "…"}') from error
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise place.error(f"is not JSON that can be read: {error}") from error


def _checked(value: Any, place: Place, *, escaped: bool) -> dict[str, Any]:
    if _is_annotated_text(value):
        value = {"text": value[0], **value[1]}
    if not isinstance(value, dict):
        raise place.error(f"is {_kind(value)}", expected='an object such as {"text": "…", "label": "…"}')
    if escaped:
        check_strings(value, place, "")
    return value


def _is_annotated_text(value: Any) -> bool:
    """Whether this is spaCy's [text, {"entities": [...]}]."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)


def _is_pair(value: Any) -> bool:
    """Whether this is CLINC's [text, label]."""
    return isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value)


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "true or false", type(None): "null", dict: "an object"}
    return kinds.get(type(value), "a number")


def item_rows(stream: BinaryIO, name: str, bad: OnBadRow, part: str | None = None) -> Iterator[Row]:
    """The objects of a list, or of the list under "data"; an article of SQuAD is a row for each of its questions.

    Of an object with a list for each split, `part` is the split to read.
    """
    number = 0
    for item in _items(stream, name, bad, part):
        if "paragraphs" not in item.values:
            yield item
            continue
        spacy = _is_document(item.values["paragraphs"])
        for values, fault in _sentences(item) if spacy else _questions(item):
            number += 1
            place = item.place._replace(row=number)
            if fault is None:
                yield Row(place, values, "")
            else:
                expected = "a document of spaCy" if spacy else "an article of SQuAD"
                bad(place.error(fault, expected=expected), json.dumps(values, ensure_ascii=False))


def is_spacy(head: bytes) -> bool:
    """Whether paragraphs are those of spaCy's training data, not of SQuAD."""
    return b'"qas"' not in head and (b'"sentences"' in head or b'"raw"' in head)


def _is_document(paragraphs: Any) -> bool:
    if not isinstance(paragraphs, list):
        return False
    return any(
        isinstance(one, dict) and "qas" not in one and ("sentences" in one or "raw" in one) for one in paragraphs
    )


def _sentences(document: Row) -> Iterator[tuple[dict[str, Any], str | None]]:
    """spaCy's JSON of version 2: a text with its entities for each paragraph, else a row for each sentence."""
    for paragraph in document.values["paragraphs"]:
        if not isinstance(paragraph, dict):
            yield {"paragraph": paragraph}, f"a paragraph is {_kind(paragraph)}"
            continue
        if isinstance(paragraph.get("raw"), str) and (paragraph.get("entities") or "sentences" not in paragraph):
            yield {"text": paragraph["raw"], "entities": paragraph.get("entities", [])}, None
            continue
        sentences = paragraph.get("sentences")
        for sentence in sentences if isinstance(sentences, list) else [None]:
            tokens = sentence.get("tokens") if isinstance(sentence, dict) else None
            if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
                yield {"sentence": sentence}, 'a sentence has no list of "tokens"'
                continue
            yield {"tokens": [token.get("orth") for token in tokens], "tags": _ner(tokens)}, None


def _ner(tokens: list[dict[str, Any]]) -> list[Any] | None:
    """The tags of the words; None where the sentence has none."""
    tags = [token.get("ner") for token in tokens]
    return None if all(tag in (None, "-", "") for tag in tags) else tags


def _questions(article: Row) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Every question with its context and the title of its article, or words about a part that is not as in SQuAD."""
    paragraphs, title = article.values["paragraphs"], article.values.get("title")
    title = f"article {article.place.row}" if title is None else title  # its questions belong together all the same
    if not isinstance(paragraphs, list):
        yield article.values, f'"paragraphs" is {_kind(paragraphs)}'
        return
    for paragraph in paragraphs:
        if not isinstance(paragraph, dict) or not isinstance(paragraph.get("qas"), list):
            yield {"paragraph": paragraph}, 'a paragraph has no list of questions ("qas")'
            continue
        for question in paragraph["qas"]:
            if not isinstance(question, dict):
                yield {"question": question}, f"a question is {_kind(question)}"
                continue
            values = {name: value for name, value in question.items() if name != "plausible_answers"}
            if isinstance(paragraph.get("context"), str):
                values["context"] = paragraph["context"]
            yield {**values, "title": title}, None


def splits_inside(stream: BinaryIO, name: str) -> tuple[str, ...]:
    """The splits of an object with a list for each: some of train, valid and test."""
    items = _Items(stream, name)
    for _ in items:
        pass
    return tuple(split for split in SPLITS if split in items.splits)


def _items(stream: BinaryIO, name: str, bad: OnBadRow, part: str | None = None) -> Iterator[Row]:
    items = _Items(stream, name, part)
    for row, (line, value, raw) in enumerate(items, 1):
        place = Place(name, line, row)
        if items.splits and _is_pair(value):
            value = {"text": value[0], "label": value[1]}
        try:
            found = Row(place, _checked(value, place, escaped=ESCAPED.search(raw) is not None), raw)
        except DataError as error:
            bad(error, raw)
            continue
        except RecursionError:
            bad(place.error("is not JSON that can be read: it is nested too deeply"), raw)
            continue
        yield found


class _Items:
    """Values of a JSON list one after the other, holding no more of the file than the longest of them."""

    def __init__(self, stream: BinaryIO, name: str, part: str | None = None) -> None:
        self.stream, self.name, self.part = stream, name, part
        self.splits: list[str] = []  # seen so far, of an object with a list for each
        self.text, self.at, self.line, self.left = "", 0, 1, b""
        self.decoder = json.JSONDecoder()
        self.ended = False
        self.bytes, self.before = 0, 0  # read so far; characters of the present line that are no longer held

    def __iter__(self) -> Iterator[tuple[int, Any, str]]:
        self._more()
        if self._next() == "{":
            yield from self._lists()
            return
        yield from self._list()

    def _list(self) -> Iterator[tuple[int, Any, str]]:
        self._take("[")
        if self._next() == "]":
            self._take("]")
            return
        while True:
            self._next()
            line = self.line
            yield line, *self._value()
            if self._next() != ",":
                break
            self._take(",")
        self._take("]")

    def _lists(self) -> Iterator[tuple[int, Any, str]]:
        """The list under "data", or those of the splits; of a part only its own."""
        self._take("{")
        while True:
            self._next()
            key, _ = self._value()
            self._next()
            self._take(":")
            split = split_named(key)
            if self._next() == "[" and key == "data" and not self.splits:
                yield from self._list()
                return
            if self._next() == "[" and split is not None:
                self.splits.append(split)
                wanted = self.part in (None, split)
                yield from (item for item in self._list() if wanted)
            else:
                self._value()
            if self._next() != ",":
                break
            self._take(",")
        if not self.splits:
            raise self._fault('there is no list under "data"', expected="SQuAD, or a list of objects")
        self._take("}")

    def _next(self) -> str:
        """The next character that is no space, not taken."""
        while True:
            found = SPACE.match(self.text, self.at)
            end = found.end() if found else self.at
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            if end < len(self.text) or self.ended:
                return self.text[end : end + 1]
            self._more()

    def _take(self, wanted: str) -> None:
        if self._next() != wanted:
            given = self.text[self.at : self.at + 20] or "the end of the file"
            raise self._fault(f"found {given!r}", expected=f'"{wanted}"')
        self.at += 1

    def _value(self) -> tuple[Any, str]:
        """The next value, and as it is written."""
        while True:
            if too_many_parts(self.text, self.at):
                raise self._fault(MANY_PARTS)
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if self.ended or len(self.text) - self.at > LONGEST:
                    self.line += self.text.count("\n", self.at, error.pos)
                    start = self.text.rfind("\n", 0, error.pos)
                    column = error.pos - start + (self.before if start < 0 else 0)
                    raise self._fault(f"is not JSON: {error.msg}", column=str(column)) from error
            except (ValueError, RecursionError) as error:
                raise self._fault(f"is not JSON that can be read: {error}") from error
            else:
                if end < len(self.text) or self.ended:  # a number may go on in what is not read yet
                    raw = self.text[self.at : end]  # only now: reading on moves what is held
                    self.line += raw.count("\n")
                    self.at = end
                    return value, raw
            self._more()

    def _more(self) -> None:
        """At least as much again as is held, so that trying again stays linear in all."""
        chunk = self.stream.read(max(1 << 18, len(self.text) - self.at))
        self.ended = not chunk
        if self.bytes == 0:
            chunk = chunk.removeprefix(BOM)
        self.bytes += len(chunk)
        data = self.left + chunk
        try:
            fresh, self.left = data.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            if self.ended or len(data) - error.start > 3:
                line = self.line + self.text.count("\n", self.at) + data.count(b"\n", 0, error.start)
                what = f"byte 0x{data[error.start]:02X} is not UTF-8"
                raise DataError(what, file=self.name, line=line, expected="text in UTF-8") from error
            fresh, self.left = data[: error.start].decode("utf-8"), data[error.start :]
        line = self.text.rfind("\n", 0, self.at)
        self.before = self.at - line - 1 if line >= 0 else self.before + self.at
        self.text, self.at = self.text[self.at :] + fresh, 0

    def _fault(self, what: str, *, column: str | None = None, expected: str | None = None) -> DataError:
        return DataError(what, file=self.name, line=self.line, column=column, expected=expected)
