"""The first cases of every fuzzer; `python -m tests.fuzz` runs any number."""

from __future__ import annotations

import pytest
from tests.fuzz.harness import load, names, run_case


@pytest.mark.parametrize("name", names())
def test_only_errors_of_regard(name: str) -> None:
    cases = getattr(load(name), "CASES", 300)
    failures = [failure for case in range(cases) for failure in run_case(name, case)]
    assert not failures, "\n".join(map(str, failures[:20]))
