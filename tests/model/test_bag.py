"""Networks without attention: means, weighted sums and windows of words against plain loops."""

from __future__ import annotations

import pytest
import torch

from regard.config import BagConfig
from regard.errors import InputError
from regard.model.bag import BagNetwork, head_width
from regard.ragged import Ragged

ROWS = [[1, 4, 2], [3], [0, 4]]


def network(config: BagConfig, **heads: int) -> BagNetwork:
    torch.manual_seed(0)
    made = BagNetwork(config, heads)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made.eval()


def test_the_vector_of_a_text_is_the_mean_of_its_rows() -> None:
    made = network(BagConfig(5, 4, hidden=3), sequence=2)
    output = made(Ragged.of(ROWS), at=torch.tensor([1]))
    table = made.encoder.tokens.weight
    torch.testing.assert_close(output.pooled, torch.stack([table[row].mean(0) for row in ROWS]))
    torch.testing.assert_close(output.hidden, table[4:5])
    assert output.logits.shape == (3, 2)
    assert made(Ragged.of([[], [1]])).pooled[0].abs().sum() == 0


def test_pairs_of_means_are_joined() -> None:
    config = BagConfig(5, 4, pair=True)
    made = network(config, sequence=2)
    batch = Ragged.of([[1, 2, 3], [4]], segments=[[0, 1, 1], [0]])
    first, second, difference, product = made(batch).pooled.split(4, 1)
    table = made.encoder.tokens.weight
    torch.testing.assert_close(first, table[[1, 4]])
    torch.testing.assert_close(second[0], table[[2, 3]].mean(0))
    assert second[1].abs().sum() == 0  # the second text of this pair is empty
    torch.testing.assert_close(difference, (first - second).abs())
    torch.testing.assert_close(product, first * second)
    assert head_width(config) == 16
    with pytest.raises(InputError, match="no segments"):
        made(Ragged.of([[1]]))


def test_tfidf_has_length_one_for_words_and_for_characters() -> None:
    made = network(BagConfig(5, 2, weighting="tfidf", word_rows=2), sequence=2)
    idf, table = made.encoder.idf, made.encoder.tokens.weight
    assert idf is not None
    expected = []
    for row in ROWS:
        parts = [[one for one in row if one <= 2], [one for one in row if one > 2]]
        expected.append(sum((idf[part] / idf[part].norm().clamp(min=1e-6)) @ table[part] for part in parts if part))
    torch.testing.assert_close(made(Ragged.of(ROWS)).pooled, torch.stack(expected))


def test_words_are_classified_with_their_neighbors() -> None:
    classes, features = 3, 2
    made = network(BagConfig(9, 3 * classes, neighbors=1, word_features=features), token=classes)
    batch = Ragged.of([[1, 2, 3, 4, 5, 6], [7, 8]])  # three words, and one
    rows = made.encoder.tokens.weight.view(9, 3, classes)
    words = [rows[[1, 2]].sum(0), rows[[3, 4]].sum(0), rows[[5, 6]].sum(0), rows[[7, 8]].sum(0)]
    sums = [
        words[0][1] + words[1][2],
        words[0][0] + words[1][1] + words[2][2],
        words[1][0] + words[2][1],
        words[3][1],
    ]
    expected = made.heads["token"](torch.stack(sums))
    torch.testing.assert_close(made(batch).logits[::features], expected)
    torch.testing.assert_close(made(batch, at=torch.tensor([2, 6])).logits, expected[[1, 3]])


def test_what_it_cannot_do() -> None:
    made = network(BagConfig(5, 2))
    assert made.decoder is None
    assert made(Ragged.of(ROWS)).logits is None
    with pytest.raises(InputError, match="a target was given"):
        made(Ragged.of(ROWS), Ragged.of(ROWS))
    with pytest.raises(InputError, match='no head "span"'):
        BagNetwork(BagConfig(5, 2), {"span": 2})
    with pytest.raises(InputError, match="weighting"):
        BagConfig(5, 2, weighting="sum")
    with pytest.raises(InputError, match="vocabulary"):
        BagConfig(0, 2)
