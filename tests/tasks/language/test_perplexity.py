"""Perplexity in sliding windows: which tokens are scored, and the scores by hand."""

from __future__ import annotations

import math

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.data.batching.preprocessing import Preprocessing
from regard.data.corpus.masking import IGNORE
from regard.data.corpus.sliding_windows import TextChunk, TextWindow, sliding_windows
from regard.ragged import Ragged
from regard.tasks.inference import network_runner, score_records
from regard.tasks.language.perplexity import SlidingPerplexity
from regard.tasks.language.token_losses import WORD, LikelihoodAnswer
from regard.text.learn import train_tokenizer_from_texts

TASK = SlidingPerplexity()
TEXT = "the old man went to the market and the market was closed"


@pytest.fixture(scope="module")
def preprocessing() -> Preprocessing:
    return Preprocessing(train_tokenizer_from_texts([TEXT] * 20, kind="char"), from_preset("tiny-gpt2").config)


def test_tokens_of_the_window_before_are_context_only(preprocessing: Preprocessing) -> None:
    windows = [TextWindow([4, 5, 6], 1, 3, 1), TextWindow([5, 6, 7, 8], 2, 2, 1)]
    inputs = TASK.examples(windows, preprocessing, labeled=True).take([0, 1])
    assert inputs[WORD].tolist() == [5, 6, IGNORE, IGNORE, 7, 8, IGNORE]


def test_scores_count_tokens_words_and_characters() -> None:
    meter = TASK.meter()
    for nll, count, window in ((6.0, 3, TextWindow([], 1, 12, 2)), (4.0, 2, TextWindow([], 1, 8, 3))):
        answer = TASK.answer(window, [(nll, count)])
        assert answer == LikelihoodAnswer(nll=nll, count=count)
        TASK.update(meter, answer, window)
    scores = {name: score.value for name, score in meter.scores().items()}
    assert scores["nll"] == pytest.approx(2.0)
    assert scores["perplexity"] == pytest.approx(math.exp(2.0))
    assert scores["word_perplexity"] == pytest.approx(math.exp(10 / 5))
    assert scores["bits_per_character"] == pytest.approx(10 / math.log(2) / 20)


def test_one_window_is_the_cross_entropy_of_the_text(preprocessing: Preprocessing) -> None:
    network = from_preset("tiny-gpt2", vocabulary=preprocessing.tokenizer.size).network.eval()
    (window,) = sliding_windows([TextChunk(TEXT, True)], preprocessing.tokenizer, size=64, overlap=0.5)
    result = score_records(
        TASK,
        network_runner(network, TASK),
        [window],  # type: ignore[list-item]  # windows take the place of records
        preprocessing,
        device=torch.device("cpu"),
    )
    with torch.no_grad():
        logits = network(Ragged.of([window.ids])).logits
    assert logits is not None
    expected = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(window.ids[1:]))
    assert result.loss == pytest.approx(float(expected), rel=1e-5)
    assert result.scores["nll"].value == pytest.approx(float(expected), rel=1e-5)
