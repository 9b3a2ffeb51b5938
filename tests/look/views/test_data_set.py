"""Views over a data set are jobs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.look.models import KINDS, session

import regard
from regard.errors import InputError
from regard.look.session import LookDefaults, LookSession
from regard.look.views import data_set
from regard.look.views.fields import Fields


@pytest.mark.parametrize("name", ["words", "heads", "faithfulness"])
def test_jobs_run_to_their_result(name: str, trained: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_set, "ROWS", {"words": 12, "heads": 4, "faithfulness": 2})
    look = LookSession([("reviews", regard.load(trained, device="cpu"))], LookDefaults("a film", data=reviews_csv))
    assert data_set.job(look, Fields({"name": name})) == {"state": "new"}
    status: dict[str, Any] = data_set.job(look, Fields({"name": name, "action": "start"}))
    for _ in range(1000):
        if status["state"] == "done":
            break
        time.sleep(0.02)
        status = data_set.job(look, Fields({"name": name}))
    assert status["error"] is None
    expected = {"words": "classes", "heads": "layers", "faithfulness": "methods"}[name]
    assert status["result"][expected]


def test_what_is_missing() -> None:
    look = session(KINDS["classifier"]())
    with pytest.raises(InputError, match="--data FILE"):
        data_set.job(look, Fields({"name": "words"}))
    with pytest.raises(InputError, match='no job "wrods"'):
        data_set.job(look, Fields({"name": "wrods"}))
