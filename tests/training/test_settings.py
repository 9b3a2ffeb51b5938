"""Settings by name: ours, those of transformers' Trainer, and misspelt ones."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from regard.errors import InputError
from regard.training.settings import TRAINER_NAMES, Lora, Settings, TrainSettings

COMMAND_ARGUMENTS = {"out", "overwrite", "resume", "start", "tokenizer", "dev"}


def test_names_of_the_trainer_lead_to_ours() -> None:
    assert set(TRAINER_NAMES.values()) <= {field.name for field in fields(Settings)} | COMMAND_ARGUMENTS
    for name, ours in TRAINER_NAMES.items():
        with pytest.raises(InputError, match=f'there is no setting "{name}"; regard calls it "{ours}"'):
            Settings.of({name: 1})


def test_a_misspelt_name() -> None:
    with pytest.raises(InputError, match=r'no setting "epoch"\. Did you mean "epochs"\?'):
        Settings.of({"epoch": 3})
    with pytest.raises(InputError, match=r'no setting "learning_rat"\. Did you mean "lr"\?'):
        Settings.of({"learning_rat": 3})
    with pytest.raises(InputError, match=r'no setting "xyzzy"\. Choose some of: adam_beta1, adam_beta2, '):
        Settings.of({"xyzzy": 3})


def test_lora_in_every_form() -> None:
    for options in ({"lora": 4}, {"lora.rank": 4}, {"lora": {"rank": 4}}, {"lora": Lora(4)}):
        assert Settings.of(options).lora == Lora(rank=4)
    assert Settings.of({"lora.rank": 4, "lora.alpha": 8}).lora == Lora(4, 8)
    with pytest.raises(InputError, match="expected its rank, or some of rank, alpha, dropout"):
        Settings.of({"lora": {"size": 4}})
    with pytest.raises(InputError, match=r"lora\.rank is -1"):
        Settings.of({"lora": -1})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("embeddings", ("embeddings",)),
        (["embeddings", 0], ("embeddings", "0")),
        (0, ("0",)),
        ((), ()),
        ("none", ("none",)),
    ],
)
def test_frozen_parts_in_every_form(given: Any, expected: tuple[str, ...] | None) -> None:
    assert Settings.of({"freeze": given}).freeze == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": 0}, "lr is 0, expected more than 0"),
        ({"batch_size": 0}, "batch_size is 0, expected at least 1"),
        ({"epochs": 1, "steps": 2}, "both given"),
        ({"dev_fraction": 1.0}, "expected a fraction from 0 up to but not including 1"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1, expected a fraction from 0 up to but not including 1"),
        ({"dropout": 1.0}, "dropout is 1, expected a fraction from 0 up to but not including 1"),
        ({"adam_beta2": 1.5}, "beta2 is 1.5, expected a fraction from 0 up to but not including 1"),
        ({"adam_eps": 0.0}, "eps is 0, expected more than 0"),
        ({"window": 0}, "window is 0, expected at least 1"),
        ({"lr": float("nan")}, "lr is nan, expected more than 0"),
        ({"lr": float("inf")}, "lr is inf, expected a finite number"),
        ({"max_grad_norm": float("nan")}, "max_grad_norm is nan, expected at least 0"),
        ({"layerwise_lr_decay": 0}, "layerwise_lr_decay is 0, expected a fraction above 0 and at most 1"),
        ({"schedule": "cosin"}, 'Did you mean "cosine"'),
        ({"epochs": 0}, "epochs is 0, expected more than 0"),
        ({"lr": "fast"}, "lr is 'fast', expected a number"),
        ({"batch_size": 2.5}, "batch_size is 2.5, expected a whole number"),
        ({"gradient_checkpointing": "yes"}, "expected true or false"),
        ({"lora": {"rnk": 4}}, "some of rank, alpha, dropout"),
        ({"class_balance": "weight"}, 'Did you mean "weights"'),
    ],
)
def test_values_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Settings.of(options)


def test_the_keyword_arguments_of_train_are_the_fields_of_settings() -> None:
    assert list(TrainSettings.__annotations__) == [field.name for field in fields(Settings)]


def test_r_drop_needs_dropout() -> None:
    with pytest.raises(InputError, match=r"rdrop=1 and dropout=0 were given, but R-Drop compares passes"):
        Settings(rdrop=1.0, dropout=0.0)
    assert Settings(rdrop=0.0, dropout=0.0).rdrop == 0
