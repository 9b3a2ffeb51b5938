"""What `regard.prepare_process` sets for torch, and what it leaves to the user."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

import regard

OURS = ("MIMALLOC_PURGE_DELAY", "ONEDNN_JIT_PROFILE", "DNNL_JIT_PROFILE", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


@pytest.mark.parametrize(
    ("machine", "own", "expected"),
    [
        ("x86_64", {}, {"GOMP_SPINCOUNT": "3000"}),
        ("AMD64", {}, {"GOMP_SPINCOUNT": "3000"}),
        ("x86_64", {"GOMP_SPINCOUNT": "7"}, {}),
        ("x86_64", {"OMP_WAIT_POLICY": "ACTIVE"}, {}),
        ("aarch64", {}, {"MIMALLOC_PURGE_DELAY": "1000", "ONEDNN_JIT_PROFILE": "0"}),
        ("arm64", {"MIMALLOC_PURGE_DELAY": "7"}, {"ONEDNN_JIT_PROFILE": "0"}),
        ("aarch64", {"ONEDNN_JIT_PROFILE": "1"}, {"MIMALLOC_PURGE_DELAY": "1000"}),
        ("aarch64", {"DNNL_JIT_PROFILE": "1"}, {"MIMALLOC_PURGE_DELAY": "1000"}),
        ("riscv64", {}, {}),
    ],
)
def test_variables_of_each_processor(
    monkeypatch: pytest.MonkeyPatch, machine: str, own: dict[str, str], expected: dict[str, str]
) -> None:
    """A value of the user's own stays."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(os, "environ", dict(own))
    assert regard.prepare_process() == expected
    assert os.environ == own | expected
    assert regard.prepare_process() == {}


LIBRARIES = [  # machines, the variable that makes a library of torch report its settings, and what it then says
    (("x86_64", "AMD64"), "OMP_DISPLAY_ENV", "VERBOSE", "GOMP_SPINCOUNT = '3000'"),
    (("aarch64", "arm64"), "MIMALLOC_VERBOSE", "1", "option 'purge_delay': 1000"),
]


@pytest.mark.parametrize(("machines", "variable", "value", "expected"), LIBRARIES, ids=["x86", "ARM"])
def test_libraries_of_torch_take_them_over(machines: tuple[str, ...], variable: str, value: str, expected: str) -> None:
    if platform.machine() not in machines:
        pytest.skip("another processor")
    clean = {name: own for name, own in os.environ.items() if name not in OURS}
    code = "import regard; regard.prepare_process(); import torch"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=clean | {variable: value}, capture_output=True, text=True, check=True)
    if expected.split()[0] not in done.stderr:
        pytest.skip("this torch has another library")
    assert expected in done.stderr


COMPUTE = """
import os, regard
regard.prepare_process()
import torch
torch.nn.Linear(64, 64)(torch.ones(32, 64)).sum().backward()
assert not os.path.exists(f"/tmp/perf-{os.getpid()}.map")
"""


def test_a_process_that_computes_leaves_no_profile_behind() -> None:
    clean = {name: own for name, own in os.environ.items() if name not in OURS}
    subprocess.run([sys.executable, "-c", COMPUTE], env=clean, check=True)


def test_the_command_line_prepares_its_process() -> None:
    code = "import os, sys; from regard.cli.__main__ import run; run(); print(os.environ.get('GOMP_SPINCOUNT'))"
    clean = {name: own for name, own in os.environ.items() if name not in OURS}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    expected = "3000" if platform.machine() in ("x86_64", "AMD64") else "None"
    assert done.stdout.splitlines()[-1] == expected
