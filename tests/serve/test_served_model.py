from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.helpers import tiny

import regard
from regard.errors import InputError
from regard.serve.operations.registry import OPERATIONS
from regard.serve.served import KINDS
from regard.serve.served_model import ServedModel, is_batch_invariant, load_served, warm_up
from regard.serve.settings import ServeLimits


def served_model(kind: str) -> ServedModel:
    return ServedModel(kind, "", tiny(kind), ServeLimits(), lambda name, value: None)


def test_every_kind_has_an_operation() -> None:
    assert tuple(OPERATIONS) == KINDS


def test_a_model_says_what_it_is_and_runs() -> None:
    served = served_model("bert")
    assert served.ping().result() is True
    assert served.info().result()["routes"] == ["/predict", "/embed", "/explain", "/tokenize"]
    served.close()
    assert served.ping().result() is False


@pytest.mark.parametrize("kind", ["bert", "reader", "masked", "gpt2"])
def test_warming_up(kind: str) -> None:
    served = served_model(kind)
    warm_up(served)
    served.close()


def test_batch_invariance_is_only_stated_where_it_is_known() -> None:
    assert is_batch_invariant(tiny("t5"))  # runs text by text
    assert not is_batch_invariant(tiny("modernbert"))


def test_an_ngram_language_model_generates_and_has_no_vectors(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The sea was calm and the old man went home.\n" * 40)
    folder = regard.pretrain([corpus], preset="bigram", objective="causal", out=tmp_path / "run").folder
    with pytest.raises(InputError, match="an n-gram language model has no vectors of texts"):
        regard.load(folder).embed(["the sea"])
    served = load_served("bigram", str(folder), ServeLimits(), lambda name, value: None, device="cpu")
    assert "/generate" in served.routes()
    assert "/embed" not in served.routes()
    (answer,) = served.submit("generate", ["The sea"], {"max_tokens": 3})
    assert answer.result(10).answer["new_tokens"] == 3
    served.close()
