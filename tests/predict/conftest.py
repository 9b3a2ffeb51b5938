"""The pretrained MiniLM, here and in transformers, and folders that transformers wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.predict.foreign import SHAPE, Foreign
from tests.references import transformers

import regard
from regard.checkpoint.source import minilm_folder
from regard.predict import Model
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def minilm() -> Model:
    return regard.load("minilm")


@pytest.fixture(scope="session")
def reference() -> Any:
    return transformers.AutoModel.from_pretrained(minilm_folder(), attn_implementation="eager").eval()


@pytest.fixture(scope="session")
def theirs() -> Any:
    return transformers.AutoTokenizer.from_pretrained(minilm_folder())


@pytest.fixture(scope="session")
def words(reviews: Callable[..., list[tuple[str, str]]]) -> Tokenizer:
    return train_tokenizer_from_texts((text for text, _ in reviews(60)), kind="wordpiece", size=90)


@pytest.fixture
def foreign(tmp_path: Path, words: Tokenizer) -> Foreign:
    """A folder that transformers wrote, and the model it wrote it from."""

    def make(kind: str = "BertForSequenceClassification", **settings: Any) -> tuple[Path, Any]:
        torch.manual_seed(0)
        config = transformers.BertConfig(vocab_size=words.size, **SHAPE, **settings)
        model = getattr(transformers, kind)(config).eval()
        model.save_pretrained(tmp_path / "foreign")
        words.save(tmp_path / "foreign")
        return tmp_path / "foreign", model

    return make
