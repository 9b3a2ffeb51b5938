"""The samples hold what their README says, in the formats it says, without a text twice."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from regard import samples
from regard.errors import InputError


def read(name: str) -> str:
    return samples.path(name).read_text(encoding="utf-8")


def messages() -> list[dict[str, str]]:
    return list(csv.DictReader(read("messages").splitlines()))


def sentences() -> list[list[tuple[str, str]]]:
    blocks = read("places").rstrip("\n").split("\n\n")
    return [[(token, tag) for token, tag in (line.split(" ") for line in block.split("\n"))] for block in blocks]


def passages() -> list[dict[str, Any]]:
    return [passage for entry in json.loads(read("questions"))["data"] for passage in entry["paragraphs"]]


def questions() -> list[dict[str, Any]]:
    return [question for passage in passages() for question in passage["qas"]]


def pairs() -> list[list[str]]:
    return [line.split("\t") for line in read("english-spanish").splitlines()]


def documents() -> list[str]:
    return read("corpus").rstrip("\n").split("\n\n")


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("name", samples.NAMES)
def test_every_sample_is_a_clean_text_file(name: str) -> None:
    raw = samples.path(name).read_bytes()
    text = raw.decode("utf-8")
    assert not text.startswith("\ufeff")
    assert "\r" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_every_file_but_code_and_readme_has_a_name() -> None:
    folder = samples.path("corpus").parent
    there = {file.name for file in folder.iterdir() if file.is_file() and file.suffix not in (".py", ".md")}
    assert there == set(samples.FILES.values())


def test_an_unknown_name_is_reported_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r'no sample "mesages"\. Did you mean "messages"\?'):
        samples.path("mesages")
    with pytest.raises(InputError, match=r"Choose one of: corpus, english-spanish, messages, places, questions\."):
        samples.path("xyz")


def test_messages_are_balanced() -> None:
    rows = messages()
    counts = Counter(row["label"] for row in rows)
    assert set(counts) == {"delivery", "refund", "account", "product", "praise", "booking"}
    assert len(rows) >= 420
    assert max(counts.values()) <= 1.2 * min(counts.values())
    assert all(set(row) == {"text", "label"} and 6 <= words(row["text"]) <= 30 for row in rows)


def test_places_are_iob2() -> None:
    tagged = sentences()
    assert len(tagged) >= 160
    kinds: Counter[str] = Counter()
    for sentence in tagged:
        before = "O"
        for token, tag in sentence:
            assert token
            assert re.fullmatch(r"O|[BI]-(PER|LOC|ORG|DATE)", tag), (token, tag)
            if tag.startswith("I-"):
                assert before[2:] == tag[2:], sentence
            kinds[tag] += 1
            before = tag
    for kind in ("PER", "LOC", "ORG", "DATE"):
        assert kinds[f"B-{kind}"] >= 40
        assert kinds[f"I-{kind}"] >= 20
    bare = sum(all(tag == "O" for _, tag in sentence) for sentence in tagged)
    assert 0.15 <= bare / len(tagged) <= 0.25
    assert sum(sentence[0][1] != "O" for sentence in tagged) >= 30


def test_answers_are_at_their_positions() -> None:
    assert json.loads(read("questions"))["version"] == "v2.0"
    assert len(passages()) >= 62
    for passage in passages():
        assert 50 <= words(passage["context"]) <= 120
        assert 2 <= len(passage["qas"]) <= 3
        for question in passage["qas"]:
            assert question["is_impossible"] is (question["answers"] == [])
            for answer in question["answers"] + question.get("plausible_answers", []):
                start, text = answer["answer_start"], answer["text"]
                assert text
                assert passage["context"][start : start + len(text)] == text, question
    every = questions()
    assert len({question["id"] for question in every}) == len(every)
    assert 0.15 <= sum(question["is_impossible"] for question in every) / len(every) <= 0.25


def test_pairs_have_two_sides() -> None:
    head, *rows = pairs()
    assert head == ["english", "spanish"]
    assert len(rows) >= 320
    for row in rows:
        assert len(row) == 2
        assert all(3 <= words(side) <= 15 for side in row), row
        english, spanish = row
        assert english.endswith("?") == spanish.endswith("?") == ("¿" in spanish), row
        assert spanish.endswith("!") == ("¡" in spanish), row


def test_the_corpus_is_documents_of_paragraphs() -> None:
    assert len(read("corpus").encode()) >= 100 * 1024
    assert len(documents()) >= 60
    assert all(line.strip() == line != "" for text in documents() for line in text.split("\n"))


TEXTS = {
    "messages": lambda: [row["text"] for row in messages()],
    "places": lambda: [" ".join(token for token, _ in sentence) for sentence in sentences()],
    "passages": lambda: [passage["context"] for passage in passages()],
    "questions": lambda: [question["question"] for question in questions()],
    "english": lambda: [row[0] for row in pairs()],
    "spanish": lambda: [row[1] for row in pairs()],
    "corpus": lambda: [line for text in documents() for line in text.split("\n")],
}


@pytest.mark.parametrize("which", TEXTS)
def test_no_two_texts_are_nearly_the_same(which: str) -> None:
    """By the words two texts share, out of all the words of both."""
    texts: Sequence[str] = TEXTS[which]()
    assert len(set(texts)) == len(texts)
    bags = [frozenset(re.findall(r"\w+", text.lower())) for text in texts]
    for (i, one), (j, other) in itertools.combinations(enumerate(bags), 2):
        assert len(one & other) <= 0.7 * len(one | other), (texts[i], texts[j])
