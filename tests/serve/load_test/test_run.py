from __future__ import annotations

import pytest
from tests.serve.load_test.helpers import Answers, answering

from regard.client import ServerError
from regard.serve.load_test.run import LoadTest
from regard.serve.load_test.workload import Workload


def test_requests_come_at_the_rate() -> None:
    with answering() as url:
        test = LoadTest(url, Workload(), seconds=0.5, timeout=5)
        test.first_answer()
        result = test.measure(100)
        assert 25 <= result.requests <= 80
        assert result.errors == {}
        assert result.p50_ms < 1000
        Answers.statuses = [429] * 5
        assert test.measure(100).errors == {"429": 5}
        Answers.statuses = [404]
        with pytest.raises(ServerError, match="status 404"):
            test.first_answer()
