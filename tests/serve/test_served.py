from __future__ import annotations

import json
from concurrent.futures import Future

from regard.errors import InputError
from regard.serve.served import Computed, RequestFailed, answer_text, error_of


def test_an_answer_is_json_that_can_be_sent() -> None:
    for answer in ({"text": "soup 🍲"}, {"text": "half \ud83c"}, {"score": 0.1 + 0.2}):
        text = answer_text(answer)
        assert json.loads(text.encode()) == answer
        assert Computed.of(answer, 3).answer == answer


def test_the_error_of_a_request() -> None:
    future: Future[Computed] = Future()
    error = InputError("wrong")
    future.set_exception(RequestFailed(error))
    assert error_of(future) is error
