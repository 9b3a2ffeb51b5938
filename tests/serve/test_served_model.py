from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.helpers import tiny

import regard
from regard.errors import FolderError, InputError
from regard.serve import fastest_engine
from regard.serve.fastest_engine import load_fastest
from regard.serve.served_model import ServedModel, is_batch_invariant, load_served, warm_up
from regard.serve.settings import ServeLimits


def served_model(kind: str) -> ServedModel:
    return ServedModel(kind, "", tiny(kind), ServeLimits(), lambda name, value: None)


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


def test_the_fastest_engine_is_used(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"torch": 5.0, "int8": 2.0, "onnx int8": 2.0}
    monkeypatch.setattr(fastest_engine, "measure", lambda model: times[model.engine])
    model, measured = load_fastest(str(trained), device="cpu")
    assert model.engine == min(measured, key=lambda name: measured[name])
    assert measured.keys() <= times.keys()
    times |= {"int8": 9.0, "onnx int8": 9.0}
    assert load_fastest(str(trained), device="cpu")[0].engine == "torch"


def test_the_measurement_is_shown(trained: Path, tmp_path: Path) -> None:
    served = load_served("a", str(trained), ServeLimits(), lambda name, value: None, device="cpu", engine="fastest")
    info = served.info().result()
    served.close()
    assert info["engine"] in info["engine_ms"]
    assert all(value > 0 for value in info["engine_ms"].values())
    with pytest.raises(FolderError):
        load_fastest(str(tmp_path))
