"""Files written for tests of readers, and fields of the records that are read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from regard.data.records import Record

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\t"), max_size=30)
GERMAN_ROWS = [
    ("Die Küche war größer und schöner als gedacht", "gut"),
    ("Das Frühstück für zwölf Gäste war kalt", "schlecht"),
    ("Ein schäbiges Zimmer – für 80 € zu teuer", "schlecht"),
    ("Sehr nette Leute, wir kommen gern zurück", "gut"),
]
LABEL = st.sampled_from(["yes", "no", "может"])
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)


def write_file(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(rows: Sequence[tuple[str, ...]], header: tuple[str, ...], **settings: Any) -> str:
    """Rows as CSV, with the settings of csv.writer."""
    out = io.StringIO()
    csv.writer(out, **settings).writerows([header, *rows])
    return out.getvalue()


def german_table(delimiter: str = ";", end: str = "\r\n") -> str:
    """GERMAN_ROWS as CSV with every cell in quotes."""
    return end.join(delimiter.join(f'"{cell}"' for cell in row) for row in [("text", "label"), *GERMAN_ROWS]) + end


def fields(records: Iterable[Record], *names: str) -> list[Any]:
    """These fields of every record: its value for one name, a tuple of values for several."""
    return list(map(attrgetter(*names), records))


def text_and_label(records: Iterable[Record]) -> list[Any]:
    return fields(records, "text", "label")
