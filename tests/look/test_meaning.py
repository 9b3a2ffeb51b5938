"""One word in several sentences."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.look.tiny_models import model

from regard.errors import InputError
from regard.look.meaning import cosine_table, principal_components
from regard.ragged import Ragged

SENTENCES = ["the bank of the river", "money with a bank", "a Bank was good"]


def test_vectors_of_a_word_are_the_mean_of_its_tokens_states() -> None:
    loaded = model("tiny-bert", {"sequence": 2})
    result = loaded.meaning("bank", SENTENCES)
    hidden = loaded.network.encoder(Ragged.of([loaded.require_tokenizer().encode(SENTENCES[0]).ids]), layers=1)
    np.testing.assert_allclose(result.vectors[1, 0], hidden[2].detach().numpy(), atol=1e-5)  # after [CLS] and "the"
    assert result.vectors.shape == (3, 3, 32)
    assert result.points.shape == (3, 3, 2)
    np.testing.assert_allclose(result.static_cosines, 1, atol=1e-5)  # the same tokens in every sentence
    np.testing.assert_allclose(result.cosines[:, range(3), range(3)], 1, atol=1e-5)
    assert [one.sentence[one.start : one.end] for one in result.occurrences] == ["bank", "bank", "Bank"]
    assert result.neighbors[0][0].token == "bank"
    json.dumps(result.json())


def test_points_keep_the_distances_of_vectors_in_a_plane() -> None:
    generator = np.random.default_rng(0)
    plane = generator.normal(size=(5, 2)) @ generator.normal(size=(2, 7))
    points = principal_components(plane.astype(np.float32))
    for i in range(5):
        for j in range(5):
            expected = np.linalg.norm(plane[i] - plane[j])
            assert np.linalg.norm(points[i] - points[j]) == pytest.approx(expected, abs=1e-4)
    assert principal_components(plane[:1].astype(np.float32)).shape == (1, 2)
    assert cosine_table(plane.astype(np.float32))[0, 1] == pytest.approx(
        plane[0] @ plane[1] / np.linalg.norm(plane[0]) / np.linalg.norm(plane[1]), abs=1e-5
    )


@pytest.mark.parametrize(
    ("word", "sentences", "message"),
    [("soup", SENTENCES, "does not have the word"), ("bank", [], "no sentence"), (" ", SENTENCES, "word is empty")],
)
def test_a_word_must_be_in_every_sentence(word: str, sentences: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model("tiny-bert", {"sequence": 2}).meaning(word, sentences)


def test_recurrent_networks_have_no_vectors_by_layer() -> None:
    with pytest.raises(InputError, match="only Transformers"):
        model("tiny-gru").meaning("bank", SENTENCES)
