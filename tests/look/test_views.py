"""The views as plain values; tests/look/test_api.py asks for them as the page does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.look.models import KINDS, TEXT, look_input, session, transformer

import regard
from regard.config import AttentionConfig
from regard.errors import InputError
from regard.look.heads import weight_map
from regard.look.reading import LookInput, read_text
from regard.look.session import LookDefaults, LookSession
from regard.look.views import attention, data_set
from regard.look.views import attention as views
from regard.look.views import steps as steps_views
from regard.look.views.arrays import packed, rounded, unpacked
from regard.look.views.attention import answer
from regard.look.views.compare import difference
from regard.look.views.fields import Fields
from regard.look.views.inside import lens, meaning
from regard.look.views.what_if import counterfactuals
from regard.look.views.why import MAX_SEARCHED, explain, limits, methods

# Fields of a request: what was sent, what was expected.


def test_fields() -> None:
    fields = Fields({"layer": 3, "heads": [0, 2], "rows": [1, 4], "text": "a", "pair": "", "off": [[1, 0]]})
    assert fields.number("layer") == 3
    assert fields.number("window", 0) == 0
    assert fields.numbers("heads") == [0, 2]
    assert fields.span("rows") == (1, 4)
    assert fields.span("columns") is None
    assert fields.pairs("off") == [(1, 0)]
    assert fields.input() == LookInput("a", off=((1, 0),))
    assert fields.texts("others") == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": "  "}, "the text is empty"),
        ({"text": 3}, '"text" is 3, expected a text'),
        ({"text": "a", "window": "x"}, "\"window\" is 'x', expected a whole number"),
        ({"text": "a", "window": True}, "expected a whole number"),
        ({"text": "x" * 1_000_001}, "expected at most 1,000,000"),
    ],
)
def test_wrong_fields(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Fields(values).input()


def test_wrong_lists() -> None:
    with pytest.raises(InputError, match="a list of whole numbers"):
        Fields({"heads": ["a"]}).numbers("heads")
    with pytest.raises(InputError, match="a start and an end"):
        Fields({"rows": [1]}).span("rows")
    with pytest.raises(InputError, match="a list of \\[layer, head\\]"):
        Fields({"off": 3}).pairs("off")
    with pytest.raises(InputError, match="a list of texts"):
        Fields({"texts": "a"}).texts("texts")


# Arrays as text and back.


@pytest.mark.parametrize(("kind", "levels"), [("uint8", 255), ("uint16", 65535)])
def test_packed_numbers_come_back(kind: str, levels: int) -> None:
    values = torch.rand(3, 4, 5)
    array = packed(values, kind)
    assert array["shape"] == [3, 4, 5]
    assert (unpacked(array) - values).abs().max() <= 0.51 * float(values.max()) / levels


def test_zeros_and_nothing() -> None:
    assert unpacked(packed(torch.zeros(2, 2))).tolist() == [[0, 0], [0, 0]]
    assert unpacked(packed(torch.zeros(0, 2))).shape == (0, 2)


def test_rounding_keeps_significant_digits() -> None:
    assert rounded(torch.tensor([[0.000123456, 12345.678]])) == [[0.00012346, 12346.0]]


# Views as plain values; tests/look/test_api.py asks for them as the page does.


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_model_is_read(kind: str) -> None:
    look = session(KINDS[kind]())
    answer = views.read(look, Fields({"text": TEXT}))
    assert answer["tokens"]
    for part in answer["parts"]:
        values = views.grid(look, Fields({"text": TEXT, "part": part["name"]}))
        assert values["maps"]["shape"][:2] == [part["layers"], part["heads"]]
    if not answer["parts"]:
        with pytest.raises(InputError, match="no attention"):
            views.grid(look, Fields({"text": TEXT}))


# Two models on one text.


FEWER = AttentionConfig(heads=2)


def test_a_model_does_not_differ_from_itself() -> None:
    look = session(KINDS["encoder"](), KINDS["encoder"]())
    answer = difference(look, Fields({"text": TEXT}))
    assert unpacked(answer["difference"]).abs().max() == 0
    assert answer["states"] == pytest.approx([1, 1, 1], abs=1e-4)


def test_differences_equal_a_plain_loop() -> None:
    models = [KINDS["encoder"](), transformer("tiny-bert", seed=5)]
    look = session(*models)
    answer = unpacked(difference(look, Fields({"text": TEXT}))["difference"])
    weights = [model.attention(TEXT)[2][1] for model in models]
    total = 0.0
    for one, two in zip(*[each.tolist() for each in weights], strict=True):
        total += sum(abs(a - b) for a, b in zip(one, two, strict=True)) / 2
    assert float(answer[1, 1]) == pytest.approx(total / len(weights[0]), abs=1e-4)


def test_models_that_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="one model is open"):
        difference(session(KINDS["encoder"]()), Fields({"text": TEXT}))
    with pytest.raises(InputError, match="different tokens"):
        difference(session(KINDS["encoder"](), KINDS["gpt2"]()), Fields({"text": TEXT}))
    with pytest.raises(InputError, match="do not correspond"):
        difference(session(KINDS["encoder"](), transformer("tiny-bert", attention=FEWER)), Fields({"text": TEXT}))


def test_models_of_different_depth_share_their_first_layers() -> None:
    answer = difference(session(KINDS["encoder"](), transformer("tiny-bert", layers=3)), Fields({"text": TEXT}))
    assert answer["difference"]["shape"][0] == 2
    assert "the first 2 are compared" in answer["notices"][0]


# Views over a data set are jobs.


@pytest.mark.parametrize("name", ["words", "heads", "faithfulness"])
def test_jobs_run_to_their_result(name: str, trained: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_set, "ROWS", {"words": 12, "heads": 4, "faithfulness": 2})
    look = LookSession([("reviews", regard.load(trained, device="cpu"))], LookDefaults("a film", data=reviews_csv))
    assert data_set.job(look, Fields({"name": name})) == {"state": "new"}
    status: dict[str, Any] = data_set.job(look, Fields({"name": name, "action": "start"}))
    for _ in range(1000):
        if status["state"] == "done":
            break
        time.sleep(0.02)
        status = data_set.job(look, Fields({"name": name}))
    assert status["error"] is None
    expected = {"words": "classes", "heads": "layers", "faithfulness": "methods"}[name]
    assert status["result"][expected]


def test_what_is_missing() -> None:
    look = session(KINDS["classifier"]())
    with pytest.raises(InputError, match="--data FILE"):
        data_set.job(look, Fields({"name": "words"}))
    with pytest.raises(InputError, match='no job "wrods"'):
        data_set.job(look, Fields({"name": "wrods"}))


# Lens and meaning as JSON.


def test_lens() -> None:
    look = session(KINDS["classifier"]())
    whole = lens(look, Fields({"text": TEXT}))
    assert whole["kind"] == "classes"
    without = lens(look, Fields({"text": TEXT, "skipped": [2]}))
    assert without["probabilities"][-1] == pytest.approx(whole["probabilities"][-2], abs=1e-5)
    with pytest.raises(InputError, match="no head"):
        lens(session(KINDS["encoder"]()), Fields({"text": TEXT}))


def test_meaning() -> None:
    look = session(KINDS["encoder"]())
    answer = meaning(look, Fields({"word": "film", "sentences": "a dull film\n\nwarm film and soup\n"}))
    assert len(answer["occurrences"]) == 2
    assert answer["cosines"][0][0][0] == pytest.approx(1)
    with pytest.raises(InputError, match="does not have the word"):
        meaning(look, Fields({"word": "film", "sentences": "a soup"}))


# Steps as JSON.


@pytest.mark.parametrize("kind", ["encoder", "local", "gpt2", "llama", "translator", "relative"])
def test_steps_of_every_kind(kind: str) -> None:
    look = session(KINDS[kind]())
    answer = steps_views.steps(look, Fields({"text": TEXT, "layer": 1, "head": 1, "token": 1}))
    assert sum(answer["weights"]) == pytest.approx(1, abs=1e-3)
    assert len(answer["input"]) == look.model(0).config.width
    assert len(answer["key_vectors"]) == answer["all_keys"]
    positions = steps_views.positions(look, Fields({}))
    assert positions["hands"][0]["rate"] == 1
    assert (positions["bias"] is not None) is (kind == "relative")


def test_long_texts_show_the_strongest_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_views, "MAX_KEYS", 3)
    look = session(KINDS["encoder"]())
    answer = steps_views.steps(look, Fields({"text": TEXT, "token": 1}))
    assert len(answer["keys"]) == 3
    assert answer["all_keys"] > 3
    assert answer["keys"] == sorted(answer["keys"])


def test_changes() -> None:
    look = session(KINDS["classifier"]())
    answer = steps_views.change(look, Fields({"text": TEXT, "changed": "the cook burned a soup"}))
    assert answer["change"]["shape"] == [3, len(answer["pairs"])]
    assert [each["kind"] for each in answer["answers"]] == ["classes", "classes"]


# Heads switched off, and words that change the answer.


def test_switched_off_heads_change_answers_and_later_maps() -> None:
    model = KINDS["classifier"]()
    look = session(model)
    whole = attention.answer(look, Fields({"text": TEXT}))
    off = attention.answer(look, Fields({"text": TEXT, "off": [[1, 0], [1, 1]]}))
    with model.ablate([(1, 0), (1, 1)]):
        expected = attention.answer(look, Fields({"text": TEXT}))
    assert off == expected
    assert off != whole
    before, after = (read_text(model, look_input(TEXT, off=heads)).parts[0] for heads in ((), ((1, 0),)))
    assert torch.equal(weight_map(before, 1), weight_map(after, 1))
    assert not torch.equal(weight_map(before, 2), weight_map(after, 2))


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_parts_of_a_translator(part: str) -> None:
    look = session(KINDS["translator"]())
    fields = {"text": TEXT, "off": [[1, 0]], "off_part": part}
    assert attention.answer(look, Fields(fields))["kind"] == "translation"
    assert attention.read(look, Fields(fields))["parts"]


def test_heads_that_do_not_exist() -> None:
    with pytest.raises(InputError, match="head 9 does not exist"):
        attention.answer(session(KINDS["classifier"]()), Fields({"text": TEXT, "off": [[1, 9]]}))
    with pytest.raises(InputError, match="no heads"):
        attention.answer(session(KINDS["gru"]()), Fields({"text": TEXT, "off": [[1, 0]]}))


def test_counterfactuals(trained: Path) -> None:
    look = session(regard.load(trained, device="cpu"))
    answer = counterfactuals(look, Fields({"text": "a lovely film"}))
    assert answer["label"] in ("good", "bad")
    assert answer["tried"] > 0


# Methods and explanations as JSON.


@pytest.mark.parametrize("kind", ["classifier", "gpt2", "gru"])
def test_explanations_are_those_of_the_model(kind: str) -> None:
    model = KINDS[kind]()
    look = session(model)
    listed = methods(look, Fields({}))
    assert "not an explanation" in listed["warning"]
    assert any(method["why_not"] for method in listed["methods"]) is (kind == "gru")
    values = explain(look, Fields({"text": TEXT, "method": "occlusion"}))
    expected = model.explain(TEXT, method="occlusion")
    assert [word["score"] for word in values["words"]] == pytest.approx([word.score for word in expected.words])
    assert values["faithfulness"]["comprehensiveness"] is not None


def test_limits_of_short_texts() -> None:
    look = session(KINDS["classifier"]())
    worst, best = limits(look, Fields({"text": TEXT}))["limits"]
    scores = explain(look, Fields({"text": TEXT, "method": "occlusion"}))["faithfulness"]
    assert scores["normalized"] is None
    assert worst <= scores["random_comprehensiveness"] <= best
    values = limits(look, Fields({"text": " ".join([TEXT] * 12)}))
    assert values["limits"] is None
    assert values["words"] == 60 > MAX_SEARCHED == values["max_words"]


def test_another_class_is_explained() -> None:
    look = session(KINDS["classifier"]())
    first = explain(look, Fields({"text": TEXT, "method": "occlusion"}))
    names = [name for name, _ in answer(look, Fields({"text": TEXT}))["bars"]]
    other = next(name for name in names if name != first["target"]["label"])
    assert explain(look, Fields({"text": TEXT, "method": "occlusion", "aim": other}))["target"]["label"] == other
