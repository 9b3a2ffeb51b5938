"""Views as plain values; tests/look/test_api.py asks for them as the page does."""

from __future__ import annotations

import pytest
from tests.look.models import KINDS, TEXT, session

from regard.errors import InputError
from regard.look.views import attention as views
from regard.look.views.fields import Fields


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
