"""Words of a text and the tokens they consist of."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.look.tiny_models import TEXT, model

from regard.errors import InputError
from regard.look.explain.targets.classes import tokenize

MODEL = model("tiny-bert", {"sequence": 2})
SMALL = model("tiny-bert", {"sequence": 2}, max_tokens=12)


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=60))
def test_every_token_of_a_text_belongs_to_one_word(text: str) -> None:
    try:
        tokenized = tokenize(MODEL, text, None)
    except InputError:  # no token at all, or a text that no tokenizer reads
        return
    members = [token for word in tokenized.words for token in word.tokens]
    assert len(members) == len(set(members))
    spans = [i for i, (start, end) in enumerate(tokenized.offsets) if tokenized.sequence_ids[i] == 0 and start < end]
    assert sorted(members) == spans
    for word in tokenized.words:
        assert 0 <= word.start < word.end <= len(text)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(TEXT.split()), min_size=1, max_size=60))
def test_every_token_is_in_a_window(words: list[str]) -> None:
    tokenized = tokenize(SMALL, " ".join(words), None)
    assert {token for one in tokenized.sequences for token in one.index} == set(range(len(tokenized)))
    whole = tokenize(MODEL, " ".join(words), None)
    assert whole.tokens == tokenized.tokens
    for one in tokenized.sequences:
        names = [MODEL.require_tokenizer().backend.id_to_token(token) for token in one.ids]
        assert names == [tokenized.tokens[i] for i in one.index]


def test_pairs_and_texts_of_other_scripts() -> None:
    tokenized = tokenize(MODEL, "東京 soup", "naïve 😀 film")
    assert [word.sequence for word in tokenized.words] == sorted(word.sequence for word in tokenized.words)
    assert {"soup", "film"} <= {tokenized.texts[word.sequence][word.start : word.end] for word in tokenized.words}
    assert tokenized.erasable.count(False) == 3


def test_a_token_of_several_words_is_one_word() -> None:
    text = "the [MASK] was warm."
    assert [text[word.start : word.end] for word in tokenize(MODEL, text, None).words][:3] == ["the", "[MASK]", "was"]
