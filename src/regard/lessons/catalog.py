"""The lessons of the package, by number and by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from regard.errors import InputError, did_you_mean

FILE_NAME = re.compile(r"(\d\d)-([a-z0-9-]+)\.md")


@dataclass(frozen=True)
class Lesson:
    """One lesson: its number, its name as in `regard lesson NAME`, its title and its file."""

    number: int
    name: str
    title: str
    path: Path

    @property
    def stem(self) -> str:
        """The file name without its ending: 07-self-attention."""
        return f"{self.number:02d}-{self.name}"


@cache
def all_lessons() -> tuple[Lesson, ...]:
    """Every lesson, in order."""
    folder = Path(str(resources.files("regard.lessons") / "pages"))
    lessons = []
    for path in sorted(folder.glob("*.md")):
        match = FILE_NAME.fullmatch(path.name)
        if match is not None:
            with path.open(encoding="utf-8") as file:
                title = file.readline().removeprefix("#").strip()
            lessons.append(Lesson(int(match[1]), match[2], title, path))
    return tuple(lessons)


def find_lesson(name: str) -> Lesson:
    """The lesson with this number or name, such as "7", "07" or "self-attention". Raises InputError for others."""
    lessons = all_lessons()
    wanted_name = name.strip().casefold()
    for lesson in lessons:
        if wanted_name in (str(lesson.number), lesson.stem[:2], lesson.name, lesson.stem):
            return lesson
    if re.fullmatch(r"[+-]?\d+", wanted_name):
        numbers = [lesson.number for lesson in lessons]
        nearest = min(lessons, key=lambda lesson: abs(lesson.number - int(wanted_name)))
        raise InputError(
            f"there is no lesson {wanted_name}; expected a number from {min(numbers)} to {max(numbers)}. "
            f"The nearest is {nearest.number}, {nearest.title}."
        )
    names = [lesson.name for lesson in lessons]
    raise InputError(f'there is no lesson "{name}".{did_you_mean(wanted_name, names)}')
