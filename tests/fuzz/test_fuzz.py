"""The first cases of every fuzzer, and all that failed once; `make fuzz` runs thousands."""

from __future__ import annotations

import pytest
from tests.fuzz.harness import names, recorded, run_case

CASES = 60


@pytest.mark.parametrize("name", names())
def test_only_errors_of_regard(name: str) -> None:
    cases = [(0, case) for case in range(CASES)] + recorded(name)
    failures = [failure for seed, case in cases for failure in run_case(name, case, seed)]
    assert not failures, "\n".join(map(str, failures[:20]))
