"""Columns and their roles."""

from __future__ import annotations

import pytest

from regard.data.schema.columns import check_roles, parse_columns
from regard.errors import InputError


def test_roles_have_a_singular() -> None:
    assert check_roles({"token": 0, "tag": "3"}) == {"tokens": "0", "tags": "3"}
    assert parse_columns("first=#1 String,label=3") == {"first": "#1 String", "label": "3"}
    for wrong in ("text", "text=", "=a", ""):
        with pytest.raises(InputError, match="is not ROLE=NAME"):
            parse_columns(wrong)
