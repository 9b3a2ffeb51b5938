"""Coverage and tokens per word of a vocabulary."""

from __future__ import annotations

import pytest
from tests.text.corpus import SENTENCES, trained

from regard.errors import InputError
from regard.text.learn import KINDS
from regard.text.tokenizer_report import tokenizer_report


def test_report_counts() -> None:
    result = tokenizer_report(trained("wordpiece"), ["the market", "the €", ""])
    assert (result.kind, result.size, result.texts, result.words) == ("wordpiece", 200, 2, 4)
    assert (result.coverage, result.unknown_fraction, result.single_token_fraction, result.tokens_per_word) == (
        0.75,
        0.25,
        0.75,
        1.0,
    )
    assert result.frequent_words == ("the", "market")
    assert result.example_tokens == ("[CLS]", "the", "market", "[SEP]")
    assert len(result.longest_tokens[0]) >= len(result.longest_tokens[-1])
    assert tokenizer_report(trained("wordpiece"), [" " * 90 + "one two three four five six"]).example.startswith(
        "one two"
    )
    with pytest.raises(InputError, match="no text to report on"):
        tokenizer_report(trained("wordpiece"), [" "])


@pytest.mark.parametrize("kind", KINDS)
def test_report_of_each_kind(kind: str) -> None:
    result = tokenizer_report(trained(kind), SENTENCES)
    assert result.kind == kind
    assert result.words == 80
    assert result.coverage > 0.98
    assert 0 <= result.unknown_fraction < 0.02
    if kind == "word":
        assert (result.single_token_fraction, result.tokens_per_word) == (1, 1)
    else:
        assert result.single_token_fraction < 1 < result.tokens_per_word
    assert result.example == "The old man went to the market on Monday, and bought five apples."
