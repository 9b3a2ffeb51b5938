"""Sentences end where a reader would say so, and no character is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpus.sentences import sentence_spans, split_sentences

CASES = [
    "Mr. Smith met Dr. Jones. | They talked.",
    "He moved to the U.S. in 1990. | It was cold.",
    "She lives in the U.S. | The house is old.",
    "The U.S. Army came. | Nobody spoke.",
    "J. K. Rowling wrote it. | George R. R. Martin did not.",
    "John F. Kennedy was elected. | He was young.",
    "Use a tool, e.g. Python, or i.e. Perl. | Both work.",
    "It costs 3.50 dollars. | Pi is 3.14159.",
    "Version 2.0.1 is out! | Try it.",
    'He said "Stop." | Then he left.',
    '"Really?" he asked. | "Yes!" | She laughed.',
    "“It is late.” | “So it is.”",
    "Wait... what? | No.",
    "He waited... | Nobody came.",
    "Well… maybe. | Who knows…",
    "What?! | You again!",
    "Apples, pears, etc. are sold. | Bananas, etc. | They are cheap.",
    "It opens at 9 a.m. on Mondays. | It closes at 5 p.m. | The rest is free.",
    "See Fig. 3 and p. 12. | Then vol. 2.",
    "Smith et al. Found nothing of note.",
    "Acme Inc. Chairman Bob resigned. | Acme Inc. | However, nobody cared.",
    "1. First things first. | 2. Then the rest.",
    "It was 1990. | In 1991 it ended.",
    "We took plan B. | Then it rained.",
    "So did I. | You did not.",
    "Visit www.example.com today. | Or write to a.b@c.org now.",
    "(It was raining.) | The sun came later.",
    "He has a Ph.D. from Yale. | She has an M.D. | They are rich.",
    "X. Y. Zed came. | He left.",
    "No. 5 is alive. | No. | It is not.",
    "On Jan. 5 it snowed. | In Feb. it thawed.",
    "St. Louis is hot. | Mt. Everest is not.",
    "今日は晴れです。 | 明日は雨です。",
    "¿Qué hora es? | Son las tres. | ¡Vamos!",
    "Привет. | Как дела?",
    "One sentence without an end",
    "Yahoo! is a firm, and so is E. coli's maker.",
]


@pytest.mark.parametrize("case", CASES)
def test_sentences_end_where_a_reader_says(case: str) -> None:
    expected = case.split(" | ")
    assert split_sentences(" ".join(expected)) == expected
    assert split_sentences("  " + "\n".join(expected) + " \n") == expected


def test_a_line_break_ends_a_sentence_only_if_set() -> None:
    text = "A heading\nThe text begins. It goes\n\non.\n"
    assert split_sentences(text) == ["A heading\nThe text begins.", "It goes\n\non."]
    assert split_sentences(text, lines=True) == ["A heading", "The text begins.", "It goes", "on."]


@given(st.text(st.sampled_from("aB1 .!?…\"'”)\n(。\u00a0é") | st.characters(), max_size=60), st.booleans())
def test_the_spans_hold_everything_but_space(text: str, lines: bool) -> None:
    result = sentence_spans(text, lines=lines)
    edges = [edge for span in result for edge in span]
    assert edges == sorted(edges)
    covered = {place for start, end in result for place in range(start, end)}
    assert all(place in covered or char.isspace() for place, char in enumerate(text))
    for start, end in result:
        assert text[start:end]
        assert text[start:end] == text[start:end].strip()
