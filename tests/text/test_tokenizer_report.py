"""Coverage and tokens per word of a vocabulary."""

from __future__ import annotations

import pytest
from tests.text.corpus import SENTENCES, trained

from regard.errors import InputError
from regard.text.learn import KINDS
from regard.text.tokenizer_report import tokenizer_report


def test_report_counts() -> None:
    found = tokenizer_report(trained("wordpiece"), ["the market", "the €", ""])
    assert (found.kind, found.size, found.texts, found.words) == ("wordpiece", 200, 2, 4)
    assert (found.coverage, found.unknown_fraction, found.single_token_fraction, found.tokens_per_word) == (
        0.75,
        0.25,
        0.75,
        1.0,
    )
    assert found.frequent_words == ("the", "market")
    assert found.example_tokens == ("[CLS]", "the", "market", "[SEP]")
    assert len(found.longest_tokens[0]) >= len(found.longest_tokens[-1])
    assert tokenizer_report(trained("wordpiece"), [" " * 90 + "one two three four five six"]).example.startswith(
        "one two"
    )
    with pytest.raises(InputError, match="no text to report on"):
        tokenizer_report(trained("wordpiece"), [" "])


@pytest.mark.parametrize("kind", KINDS)
def test_report_of_each_kind(kind: str) -> None:
    found = tokenizer_report(trained(kind), SENTENCES)
    assert found.kind == kind
    assert found.words == 80
    assert found.coverage > 0.98
    assert 0 <= found.unknown_fraction < 0.02
    assert found.single_token_fraction < 1 < found.tokens_per_word
    assert found.example == "The old man went to the market on Monday, and bought five apples."
