"""Answers of models trained here and elsewhere: the same alone and in company, as transformers gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.predict.foreign import REVIEWS, Foreign

import regard
from regard.errors import InputError
from regard.model.linear import can_pack
from regard.progress import Progress
from regard.text.learn import train_tokenizer_from_texts


def test_an_answer_is_the_same_alone_and_in_company(trained: Path) -> None:
    model = regard.load(trained, device="cpu")
    together = model.predict(REVIEWS)
    for text, answer in zip(REVIEWS, together, strict=True):
        alone = model.predict([text])[0].json()
        assert alone["label"] == answer.json()["label"]
        assert alone["scores"] == pytest.approx(answer.json()["scores"], abs=1e-5)
    assert [answer.json()["label"] for answer in model.predict(REVIEWS, batch_tokens=8)] == [
        answer.json()["label"] for answer in together
    ]


@pytest.mark.skipif(not can_pack(), reason="torch has no oneDNN here, or not with Arm's kernels")
@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_an_answer_has_the_same_bits_alone_and_in_company(foreign: Foreign, kind: str) -> None:
    folder, _ = foreign(kind)
    model = regard.load(folder, device="cpu")
    texts = [*REVIEWS, "warm", "a", "fun " * 100, "dull"] * 3
    alone = [model.predict([text])[0].json() for text in texts]
    assert [answer.json() for answer in model.predict(texts)] == alone
    assert [answer.json() for answer in model.predict(texts, batch_tokens=64)] == alone


def test_long_texts_are_read_in_windows(trained: Path) -> None:
    answer = regard.load(trained, device="cpu").predict(["warm and lovely " * 400])[0]
    assert answer.windows > 1
    assert not answer.truncated


def test_progress_counts(trained: Path) -> None:
    reports: list[Progress] = []
    regard.load(trained, device="cpu").predict(REVIEWS, progress=reports.append)
    assert reports == [Progress("answers", done, 4) for done in (1, 2, 3, 4)]


def test_the_tokenizer_of_another_model(trained: Path, tmp_path: Path) -> None:
    folder = regard.load(trained).save(tmp_path / "copy")
    train_tokenizer_from_texts(
        [f"{one}{two} word{one}{two}" for one in "abcdefgh" for two in "ijklmnop"], kind="bpe", size=265
    ).save(folder)
    with pytest.raises(InputError, match="belongs to another model"):
        regard.load(folder, device="cpu").predict(["zword zap"])
