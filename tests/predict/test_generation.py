"""Models that write and translate."""

from __future__ import annotations

import pytest

import regard
from regard.errors import InputError
from regard.predict.translation import Alignment, Translated
from regard.text.learn import train_tokenizer_from_texts

# Generation with a model: texts, ids and streams of the same continuation.


def test_texts_ids_and_streams_agree() -> None:
    tokenizer = train_tokenizer_from_texts(["a small text about nothing"] * 9, kind="char")
    model = regard.create("tiny-gpt2", tokenizer=tokenizer)
    text = model.generate("a small", max_tokens=8)
    assert model.generate(["a small", "text"], max_tokens=8)[0] == text
    assert "".join(model.stream("a small", max_tokens=8)) == text
    (best,) = model.continuations(["a small"], max_tokens=8)[0]
    assert best.text == text
    prompt = tokenizer.encode("a small").ids
    assert model.generate_ids([prompt], max_tokens=8)[0] == list(model.continuations([prompt], max_tokens=8)[0][0].ids)


def test_an_encoder_cannot_generate() -> None:
    with pytest.raises(InputError, match=r"this bert model .* and cannot generate"):
        regard.create("tiny-bert").generate_ids([[5]])


# Alignments of translations by token and by word.


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (("▁ein", "▁klei", "nes"), ("▁a", "▁small")),
        (("Ġein", "Ġklei", "nes"), ("Ġa", "Ġsmall")),
        (("ein", "klei", "##nes"), ("a", "small")),
    ],
)
def test_tokens_of_a_word_are_added_up(source: tuple[str, ...], target: tuple[str, ...]) -> None:
    words = Alignment(source, target, ((0.5, 0.25, 0.25), (0.0, 0.5, 0.5))).by_word()
    assert (words.source, words.target) == (("ein", "kleines"), ("a", "small"))
    assert words.weights == ((0.5, 0.5), (0.0, 1.0))


def test_rows_of_a_target_word_are_averaged() -> None:
    words = Alignment(("▁a", "▁b"), ("▁c", "d"), ((1.0, 0.0), (0.5, 0.5))).by_word()
    assert (words.target, words.weights) == (("cd",), ((0.75, 0.25),))


def test_json_has_alignments_only_where_there_are_some() -> None:
    alignment = Alignment(("a",), ("b",), ((1.0,),))
    assert "alignments" not in Translated("b", -1.0).json()
    assert Translated("b", -1.0, alignments=(alignment,)).json()["alignments"][0]["source"] == ("a",)
    assert Translated("b", -1.0).text == "b"
