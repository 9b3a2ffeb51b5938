"""The reasons for chosen settings."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.sentence_encoder import write_sentence_encoder

from regard import samples
from regard.training.defaults.explain import BY_USER, SettingReason
from regard.training.inputs.preview import explain_defaults


def reasons(**settings: Any) -> dict[str, SettingReason]:
    explained = explain_defaults(samples.path("messages"), preset="tiny-bert", **settings)
    return {reason.name: reason for reason in explained}


def test_every_setting_has_a_value_and_a_reason() -> None:
    explained = reasons()
    assert list(explained)[:3] == ["task", "dev_fraction", "refit"]
    assert {"head_init", "pooling", "epochs", "batch_tokens", "lr", "dropout"} <= explained.keys()
    assert all(reason.value and reason.reason for reason in explained.values())
    assert BY_USER not in [reason.reason for reason in explained.values()]


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ({"epochs": 3}, "epochs", "3"),
        ({"batch_size": 12}, "batch_size", "12"),
        ({"batch_tokens": 600}, "batch_tokens", "600"),
        ({"lr": 1e-3}, "lr", "0.001"),
        ({"steps": 7}, "steps", "7"),
        ({"dropout": 0.3}, "dropout", "0.3"),
        ({"rdrop": 1.5}, "rdrop", "1.5"),
        ({"dev_fraction": 0.5}, "dev_fraction", "228 of 456 rows"),
        ({"refit": "no"}, "refit", "no"),
        ({"head_init": "random"}, "head_init", "random"),
    ],
)
def test_what_the_user_gave_is_named_as_such(settings: dict[str, Any], name: str, value: str) -> None:
    assert reasons(**settings)[name][1:] == (value, BY_USER)


def test_values_are_those_of_a_training(tmp_path: Any) -> None:
    import regard

    explained = reasons()
    events: list[Any] = []

    def stop(event: Any) -> None:
        events.append(event)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        regard.train(samples.path("messages"), preset="tiny-bert", out=tmp_path / "run", progress=stop)
    chosen = events[0].values["lines"][-1]
    assert f"lr {explained['lr'].value}," in chosen
    assert f"epochs {explained['epochs'].value}," in chosen


def test_nothing_to_add_without_validation_rows() -> None:
    assert reasons(dev_fraction=0)["refit"].reason == "there are no validation rows to add"


def test_reasons_are_those_of_this_data_and_model() -> None:
    explained = reasons()
    assert explained["head_init"][1:] == ("random", "the network is trained from scratch")
    assert explained["refit"].reason == "only pretrained classifiers of single texts are trained again by default"


def test_a_translator_with_norms_first_has_a_reason_for_no_r_drop() -> None:
    data, network = samples.path("english-spanish"), "transformer-small"
    without = {reason.name: reason for reason in explain_defaults(data, preset=network, device="cpu")}
    with_it = {reason.name: reason for reason in explain_defaults(data, preset=network, device="cpu", rdrop=1.0)}
    expected = ("0", "it doubles the time of a step; 1 on a GPU with up to 100,000 pairs, else 0")
    assert without["rdrop"][1:] == expected
    assert without["lr"].reason == "a network of width 256 from scratch; steps of fewer than 8,192 tokens get less"
    assert with_it["rdrop"][1:] == ("1", BY_USER)
    assert with_it["lr"].reason.startswith("a network of width 256 from scratch, with R-Drop;")
    assert float(with_it["lr"].value) > float(without["lr"].value)


@pytest.mark.parametrize(
    ("words", "settings", "dropout", "reason"),
    [
        (4, {}, "0", "does not overfit short texts"),
        (40, {}, "0.1", "the model's own"),
        (4, {"head_init": "probe"}, "0.1", "the model's own"),
        (4, {"dropout": 0.2}, "0.2", BY_USER),
    ],
)
def test_short_texts_are_learned_without_dropout(
    tmp_path: Path, words: int, settings: dict[str, Any], dropout: str, reason: str
) -> None:
    letters = product("abcde", "fghi", "jklm", "nopqr")
    texts = [f"{' '.join(four)} " * (words // 4) for four in letters]
    rows = [{"text": text, "label": "vowel" if text[0] in "ae" else "consonant"} for text in texts]
    other_words = "a black cab and a mineral lamp on a bright pier near her nice field of green apples"
    start = write_sentence_encoder(tmp_path / "start", [*texts, other_words, other_words])
    explained = {one.name: one for one in explain_defaults(rows, start=start, **settings)}
    assert explained["dropout"].value == dropout
    assert reason in explained["dropout"].reason
