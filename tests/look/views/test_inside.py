"""Lens and meaning as JSON."""

from __future__ import annotations

import pytest
from tests.look.models import KINDS, TEXT, session

from regard.errors import InputError
from regard.look.views.fields import Fields
from regard.look.views.inside import lens, meaning


def test_lens() -> None:
    look = session(KINDS["classifier"]())
    whole = lens(look, Fields({"text": TEXT}))
    assert whole["kind"] == "classes"
    without = lens(look, Fields({"text": TEXT, "skipped": [2]}))
    assert without["probabilities"][-1] == pytest.approx(whole["probabilities"][-2], abs=1e-5)
    with pytest.raises(InputError, match="no head"):
        lens(session(KINDS["encoder"]()), Fields({"text": TEXT}))


def test_meaning() -> None:
    look = session(KINDS["encoder"]())
    answer = meaning(look, Fields({"word": "film", "sentences": "a dull film\n\nwarm film and soup\n"}))
    assert len(answer["occurrences"]) == 2
    assert answer["cosines"][0][0][0] == pytest.approx(1)
    with pytest.raises(InputError, match="does not have the word"):
        meaning(look, Fields({"word": "film", "sentences": "a soup"}))
