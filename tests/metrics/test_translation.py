"""Scores of translations are those of sacreBLEU."""

from __future__ import annotations

import pytest
import sacrebleu

from regard.errors import InputError
from regard.metrics.translation import TranslationMeter, signatures

PREDICTED = ["The cat sat on the mat", "a dog runs", "hello", "it is raining in the north of the country"]
REFERENCES = ["the cat is on the mat", "the dog runs fast", "hello there", "it is raining in the north of the land"]


def test_scores_of_a_corpus_are_those_of_sacrebleu() -> None:
    meter = TranslationMeter()
    for predicted, reference in zip(PREDICTED, REFERENCES, strict=True):
        meter.add(predicted, reference)
    scores = meter.scores()
    assert meter.rows == 4
    assert scores["bleu"].value == pytest.approx(sacrebleu.corpus_bleu(PREDICTED, [REFERENCES], force=True).score)
    lowered = sacrebleu.corpus_bleu(PREDICTED, [REFERENCES], force=True, lowercase=True).score
    assert scores["bleu_lowercase"].value == pytest.approx(lowered)
    assert scores["bleu_lowercase"].value > scores["bleu"].value
    assert scores["chrf"].value == pytest.approx(sacrebleu.corpus_chrf(PREDICTED, [REFERENCES]).score)


def test_signatures_name_the_version_of_sacrebleu() -> None:
    assert set(signatures()) == {"bleu", "chrf", "bleu_lowercase"}
    assert signatures()["bleu_lowercase"].startswith("nrefs:1|case:lc|eff:no|tok:13a|")
    assert all(f"version:{sacrebleu.__version__}" in signature for signature in signatures().values())


def test_without_rows_there_is_no_score() -> None:
    with pytest.raises(InputError):
        TranslationMeter().scores()
