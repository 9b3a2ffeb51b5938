"""The scores of texts with erased words, and the parts they are computed from."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.look.tiny_models import TEXT, model

from regard.errors import InputError
from regard.look.explain.exclusive import exclusive
from regard.look.explain.explain import make_scorer
from regard.look.explain.linearized import linearized
from regard.look.explain.methods import methods_for
from regard.look.explain.scorer import embedding_modules
from regard.look.explain.targets.classes import tokenize
from regard.look.explain.words import is_unspaced, word_spans
from regard.model import hooks as taps
from regard.model.attention import AttentionKernel
from regard.ragged import Ragged

# Values with erased words, masked or removed.


def test_masked_and_removed_words_equal_texts_without_them() -> None:
    classifier = model("tiny-bert", {"sequence": 2})
    scorer: Any = make_scorer(classifier, "the soup was warm")
    masked = scorer.erased_probabilities(scorer.word_masks([1]))
    label = scorer.target.info.label
    assert masked[0] == pytest.approx(classifier.predict(["the [MASK] was warm"])[0].scores[label], abs=1e-6)
    language = model("tiny-gpt2")
    scorer = make_scorer(language, "the soup was warm", target="and")
    for words, text in (([1], "the was warm"), ([3], "the soup was"), ([0, 2], "soup warm")):
        erased = scorer.word_masks(words).any(0, keepdims=True)
        expected = make_scorer(language, text, target="and")
        value = expected.erased_probabilities(expected.nothing_erased)
        assert scorer.erased_probabilities(erased) == pytest.approx(value, abs=1e-6)


def test_a_text_without_any_word_still_has_a_value() -> None:
    for name in ("tiny-gpt2", "tiny-t5", "tiny-gru"):
        scorer: Any = make_scorer(model(name), TEXT)
        assert np.isfinite(scorer.erased_scores(scorer.all_erased)).all()


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-t5", "tiny-gru", "tiny-lstm-feeding", "tiny-llama"])
def test_token_vectors_give_the_same_value_as_tokens(name: str) -> None:
    scorer: Any = make_scorer(model(name, {"sequence": 2} if name == "tiny-bert" else None), TEXT)
    (sequence,) = scorer.text.sequences
    with torch.no_grad():
        vectors = scorer.token_vectors(sequence)
        value = scorer.score_vectors(sequence, torch.stack((vectors, vectors)))
    assert value.tolist() == pytest.approx(scorer.erased_scores(scorer.nothing_erased).tolist() * 2, abs=1e-5)


def test_the_baseline_keeps_special_tokens() -> None:
    scorer: Any = make_scorer(model("tiny-bert", {"sequence": 2}), TEXT)
    (sequence,) = scorer.text.sequences
    vectors = scorer.token_vectors(sequence)
    blank = scorer.baseline_vectors(sequence, vectors)
    assert torch.equal(blank[0], vectors[0])
    assert torch.equal(blank[1], embedding_modules(scorer.network)[0].weight[scorer.mask])


# Words of a text and the tokens they consist of.


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


# Words of texts in any script.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, it's 3.5!", ["Don't", "stop", ",", "it's", "3.5", "!"]),
        ("naïve café’s end.", ["naïve", "café’s", "end", "."]),
        ("state-of-the-art", ["state", "-", "of", "-", "the", "-", "art"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("a\u0301b 👩‍👩", ["a\u0301b", "👩‍", "👩"]),
        ("a_b 'quoted'", ["a_b", "'", "quoted", "'"]),
    ],
)
def test_words_keep_their_marks_and_apostrophes(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == words


@given(st.text(max_size=80))
def test_spans_cover_everything_but_spaces_once(text: str) -> None:
    spans = word_spans(text)
    assert all(start < end for start, end in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    covered = {i for start, end in spans for i in range(start, end)}
    assert all(i in covered or character.isspace() for i, character in enumerate(text))


def test_scripts_without_spaces_are_recognized() -> None:
    assert is_unspaced("我喜欢")
    assert is_unspaced("สวัสดี")
    assert not is_unspaced("soup सूप суп")


# Explanations of one network in several threads.


def test_one_thread_at_a_time_and_the_same_again() -> None:
    network = model("tiny-bert").network
    entered = threading.Event()

    def enter() -> None:
        with exclusive(network):
            entered.set()

    with exclusive(network), exclusive(network):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.05)
    thread.join()
    assert entered.is_set()


def test_parallel_explanations_are_those_of_one_after_the_other() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    names = [name for name in methods_for(loaded.network) if name != "integrated_gradients"] * 2
    expected = {name: loaded.explain(TEXT, method=name).token_scores for name in set(names)}
    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda name: loaded.explain(TEXT, method=name).token_scores, names))
    for name, values in zip(names, scores, strict=True):
        assert values == pytest.approx(expected[name], abs=1e-5), name
    assert {one.kernel for one in loaded.network.modules() if isinstance(one, AttentionKernel)} == {"auto"}
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in loaded.network.modules())


# A linearized network gives the same answers.


def test_a_linearized_network_gives_the_same_answers_and_is_restored() -> None:
    for name, heads in (("tiny-bert", {"sequence": 2}), ("tiny-llama", None), ("tiny-modernbert", {"sequence": 2})):
        loaded = model(name, heads)
        batch = Ragged.of([[5, 6, 7, 8]])
        before = loaded.network(batch).logits
        activations = [getattr(module, "activation", None) for module in loaded.network.modules()]
        with linearized(loaded.network):
            torch.testing.assert_close(loaded.network(batch).logits, before, atol=1e-5, rtol=1e-5)
        assert activations == [getattr(module, "activation", None) for module in loaded.network.modules()]
        assert not taps.has_hooks(loaded.network)
