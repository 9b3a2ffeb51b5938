"""Which recipe a training gets: when it is repeated, and what the user's settings change about it."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.sentence_encoder import write_sentence_encoder

import regard
from regard.errors import InputError
from regard.training.defaults.explain import BY_USER
from regard.training.inputs.preview import choose_settings, explain_defaults

WORDS = ["".join(letters) for letters in product("bcdf", "aeiou", "lmnr")]
PAIRS = [
    {"first": f"{one} {WORDS[number % 80]}", "second": f"{one} {WORDS[number // 80]}", "label": "ab"[number % 2]}
    for number in range(700)
    for one in [WORDS[number % 71]]
]
TEXTS = [
    {"text": f"{one['first']} {one['second']} {number}", "label": one["label"]} for number, one in enumerate(PAIRS)
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [f"{pair['first']} {pair['second']}" for pair in PAIRS] + [" ".join(map(str, range(700)))]
    return write_sentence_encoder(tmp_path_factory.mktemp("encoder") / "model", texts)


@pytest.fixture(scope="module")
def deep_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [f"{pair['first']} {pair['second']}" for pair in PAIRS]
    return write_sentence_encoder(tmp_path_factory.mktemp("deep") / "model", texts, layers=4)


def chosen(encoder: Path, rows: list[dict[str, Any]], **settings: Any) -> tuple[float | None, int | None]:
    result = choose_settings(rows, start=encoder, **settings)
    return result.epochs, result.repeats


def test_pairs_are_learned_several_times(encoder: Path) -> None:
    assert chosen(encoder, PAIRS, device="cpu") == (1.67, 3)
    assert chosen(encoder, PAIRS[:500], device="cpu") == (4, 1)
    reasons = {reason.name: reason for reason in explain_defaults(PAIRS, start=encoder, device="cpu")}
    assert reasons["repeats"][1:] == (
        "3",
        "the mean of the weights of several short trainings is better than one long training",
    )
    assert reasons["epochs"].reason.endswith("; in each of 3 trainings")


@pytest.mark.parametrize(
    ("settings", "frozen"),
    [
        ({}, ("embeddings", "0")),
        ({"freeze": "none"}, ("none",)),
        ({"freeze": ["embeddings", 1]}, ("embeddings", "1")),
        ({"lora": 2}, ()),
    ],
)
def test_few_pairs_leave_the_first_layer_as_it_is_if_the_user_does_not_say_what_is_trained(
    deep_encoder: Path, settings: dict[str, Any], frozen: tuple[str, ...]
) -> None:
    few = choose_settings(PAIRS[:300], start=deep_encoder, device="cpu", **settings)
    assert few.freeze == frozen
    reasons = {one.name: one for one in explain_defaults(PAIRS[:300], start=deep_encoder, device="cpu", **settings)}
    if not frozen:
        assert "freeze" not in reasons
    elif "freeze" in settings:
        assert reasons["freeze"][1:] == (" ".join(frozen), BY_USER)
    else:
        assert reasons["freeze"].value == "embeddings 0"
        assert "few pairs on a CPU" in reasons["freeze"].reason
    many = choose_settings(PAIRS, start=deep_encoder, device="cpu")
    assert many.freeze == ()


@pytest.mark.parametrize(
    ("rows", "settings", "frozen", "dropout"),
    [
        (150, {}, ("embeddings", "0"), 0.0),
        (240, {}, (), None),
        (150, {"device": "cuda"}, (), None),
        (150, {"epochs": 1}, (), None),
        (150, {"lora": 2}, (), None),
        (150, {"head_init": "probe"}, (), None),
        (150, {"freeze": "none"}, ("none",), 0.0),
        (150, {"dropout": 0.2}, ("embeddings", "0"), 0.2),
    ],
)
def test_few_texts_change_the_upper_layers_without_dropout_on_a_cpu(
    deep_encoder: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    settings: dict[str, Any],
    frozen: tuple[str, ...],
    dropout: float | None,
) -> None:
    device = torch.device(settings.pop("device", "cpu"))
    monkeypatch.setattr("regard.training.defaults.choose.pick_device", lambda _: device)
    result = choose_settings(TEXTS[:rows], start=deep_encoder, device="cpu", **settings)
    assert result.freeze == frozen
    assert result.dropout == dropout
    reasons = {one.name: one for one in explain_defaults(TEXTS[:rows], start=deep_encoder, device="cpu", **settings)}
    if dropout == 0.0:
        assert reasons["dropout"].reason == (
            "the contrastive steps take less time on a CPU, and few texts are learned as well without"
        )
    if frozen == ("embeddings", "0"):
        assert "few texts on a CPU are learned faster" in reasons["freeze"].reason


def test_contrastive_training_leaves_frozen_parts_and_the_models_dropout_as_they_are(
    deep_encoder: Path, tmp_path: Path
) -> None:
    regard.train(TEXTS[:60], out=tmp_path / "run", start=deep_encoder, device="cpu")
    before, after = (load_file(folder / "model.safetensors") for folder in (deep_encoder, tmp_path / "run"))
    after = {name.removeprefix("bert."): weight for name, weight in after.items()}
    changed = {name for name in before if not torch.equal(before[name], after[name.removeprefix("bert.")])}
    assert any(".layer.1." in name for name in changed)
    assert not any("embeddings" in name or ".layer.0." in name for name in changed)
    assert json.loads((tmp_path / "run/config.json").read_text())["hidden_dropout_prob"] == 0.1
    network = regard.load(tmp_path / "run").network
    assert {module.p for module in network.modules() if isinstance(module, torch.nn.Dropout)} == {0.1}


def test_a_part_that_is_not_there_is_refused_before_a_training(encoder: Path) -> None:
    for rows in (PAIRS[:300], TEXTS[:40]):
        for parts, wrong in (("embeding", "embeding"), ("embeddings 9", "9"), ("none 0", "none")):
            with pytest.raises(InputError, match=f'there is no part "{wrong}"'):
                explain_defaults(rows, start=encoder, device="cpu", freeze=parts.split())
    (reason,) = (
        one for one in explain_defaults(TEXTS[:40], start=encoder, device="cpu", freeze="0") if one.name == "freeze"
    )
    assert reason[1:] == ("0", BY_USER)


def test_a_gpu_trains_longer(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.defaults.choose.pick_device", lambda _: torch.device("cuda"))
    assert chosen(encoder, PAIRS) == (3, 3)
    assert chosen(encoder, PAIRS, epochs=2) == (2, 1)


@pytest.mark.parametrize(
    ("settings", "rdrop"), [({}, 1.0), ({"dropout": 0.0}, 0.0), ({"rdrop": 0.0}, 0.0), ({"lora": 4}, 0.0)]
)
def test_tags_have_rdrop_on_a_gpu(
    encoder: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], rdrop: float
) -> None:
    rows = [
        {"tokens": [*pair["first"].split(), str(number)], "tags": ["B-X", "O", "O"]}
        for number, pair in enumerate(PAIRS)
    ]
    monkeypatch.setattr("regard.training.defaults.recipes.RDROP_ROWS", (100, 200, 900))
    assert choose_settings(rows, start=encoder, device="cpu", **settings).rdrop == 0.0
    monkeypatch.setattr("regard.training.defaults.choose.pick_device", lambda _: torch.device("cuda"))
    assert choose_settings(rows, start=encoder, device="cpu", **settings).rdrop == rdrop


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"epochs": 2}, (2, 1)),
        ({"steps": 7}, (None, 1)),
        ({"repeats": 2}, (1.67, 2)),
        ({"epochs": 2, "repeats": 2}, (2, 2)),
        ({"lora": 4}, (5, 1)),
    ],
)
def test_how_often_depends_on_what_the_user_leaves_open(
    encoder: Path, settings: dict[str, Any], expected: tuple[float | None, int]
) -> None:
    assert chosen(encoder, PAIRS, device="cpu", **settings) == expected
    names = {reason.name: reason for reason in explain_defaults(PAIRS, start=encoder, device="cpu", **settings)}
    if expected[1] > 1:
        assert names["repeats"].reason == BY_USER
    else:
        assert "repeats" not in names


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (2, 2)),
        ({"epochs": 4}, (4, 1)),
        ({"repeats": 3}, (6, 3)),
        ({"dropout": 0.1}, (6, 1)),
    ],
)
def test_short_texts_of_two_classes(
    encoder: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], expected: tuple[float, int]
) -> None:
    """As many as `MANY_SHORT_TEXTS` says are learned several times; here some hundred."""
    monkeypatch.setattr("regard.training.defaults.recipes.MANY_SHORT_TEXTS", (600, 800, 900))
    assert chosen(encoder, TEXTS, device="cpu", **settings) == expected
    three = [{**row, "label": row["label"] if number % 3 else "c"} for number, row in enumerate(TEXTS)]
    assert chosen(encoder, three, device="cpu", **settings)[1] == settings.get("repeats", 1)
