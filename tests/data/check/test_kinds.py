"""Every kind of finding has a severity, a title and a fix, and every kind in the code is known."""

from __future__ import annotations

import re
from pathlib import Path

from regard.data.check import kinds
from regard.data.check.finding import SEVERITIES
from regard.data.check.kinds import KINDS


def test_severities_titles_and_fixes() -> None:
    for name, kind in KINDS.items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert kind.severity in SEVERITIES
        assert kind.title[0].islower() or kind.title.split()[0].isupper()
        assert kind.fix.endswith(".")


def test_kinds_that_rules_add_are_known() -> None:
    folder = Path(kinds.__file__).parent
    added = {
        name
        for path in folder.rglob("*.py")
        for name in re.findall(
            r'(?:collector\.add|_add_\w+|self\._add)\(\s*"([a-z-]+)"', path.read_text(encoding="utf-8")
        )
    }
    assert len(added) > 20
    assert added <= set(KINDS)
