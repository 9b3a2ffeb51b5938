"""Lessons are listed in order and looked up by number and name."""

from __future__ import annotations

import pytest

from regard.errors import InputError
from regard.lessons.catalog import all_lessons, find_lesson


def test_lessons_are_numbered_without_repeats() -> None:
    numbers = [lesson.number for lesson in all_lessons()]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert all(lesson.title and not lesson.title.startswith("#") for lesson in all_lessons())


@pytest.mark.parametrize("name", ["1", "01", "counting", "Counting", "01-counting"])
def test_a_lesson_by_number_or_name(name: str) -> None:
    assert find_lesson(name).stem == "01-counting"


def test_unknown_lessons_name_the_nearest() -> None:
    with pytest.raises(InputError, match=r'"countin".*Did you mean "counting"'):
        find_lesson("countin")
    with pytest.raises(InputError, match=r"no lesson 0; expected a number from 1 to .*The nearest is 1"):
        find_lesson("0")
