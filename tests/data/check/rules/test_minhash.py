"""Sketches of similar texts agree in many bytes, those of other texts do not."""

from __future__ import annotations

import numpy as np
from tests.data.check.examples import good

from regard.data.check.rules.minhash import BYTES, Sketcher, similar_pairs, words_of


def sketches(texts: list[str]) -> np.ndarray:
    sketcher = Sketcher()
    for text in texts:
        sketcher.add(words_of(text)[0], salt=0)
    return np.frombuffer(sketcher.finish(), np.uint8).reshape(-1, BYTES)


def test_similar_texts_are_paired() -> None:
    long_text = " ".join(good(4))
    texts = [*good(20), long_text, long_text.replace("warm", "cold")]
    assert similar_pairs(sketches(texts), np.arange(len(texts)), min_similarity=0.66) == [(20, 21)]


def test_agreement_estimates_the_common_features() -> None:
    words = [f"word{number}" for number in range(400)]
    a, b = sketches([" ".join(words[:300]), " ".join(words[100:])])
    assert abs((a == b).mean() - 0.5) < 0.2


def test_words_and_letters() -> None:
    assert words_of("Good, soup!") == (["good", "soup"], True)
    assert words_of("東京都は日本の首都であり世界最大の都市の一つである")[0][0] == "東"
    assert words_of("a " * 30_000)[1] is False
