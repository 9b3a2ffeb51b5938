"""Names that help lines list are those of the registries; help lines are sentences."""

from __future__ import annotations

import pytest

from regard import cli
from regard.cli import arguments
from regard.data.formats.registry import format_names
from regard.data.records import all_roles, record_type_names
from regard.tasks import TASKS


def test_tasks_formats_and_roles_are_those_of_the_registries() -> None:
    assert set(arguments.TRAIN_TASKS) == set(TASKS)
    assert set(arguments.CHECK_TASKS) == set(record_type_names())
    assert set(arguments.FORMATS) == set(format_names())
    assert set(arguments.ROLES) <= set(all_roles())
    predicting = [task for task in TASKS.values() if task.command == "predict"]
    assert set(arguments.INPUT_ROLES) == {role for task in predicting for role in task.input_roles}


def test_pretrain_hides_settings_that_it_does_not_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pretrain", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    for flag in ("--class-balance", "--label-smoothing", "--vocabularies", "--prefix"):
        assert not any(flag in line for line in lines)
    assert any("--weight-decay" in line for line in lines)


def test_words_after_two_dashes_are_no_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["embed", "nowhere-model", "--", "--foo"]) == 1
    assert "is not a folder" in capsys.readouterr().err
