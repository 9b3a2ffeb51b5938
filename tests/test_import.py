"""Importing is light: little beside torch, and only the packages the core is built on."""

from __future__ import annotations

import importlib.util
import json
import os
import pkgutil
import platform
import statistics
import subprocess
import sys

import pytest

import regard

CORE = ("torch", "numpy", "tokenizers", "safetensors", "pyarrow")
FORBIDDEN = ("rich", "tyro", "transformers", "huggingface_hub", "sklearn", "matplotlib", "fastapi", "onnx", "pandas")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(regard.__path__, "regard.")
    if module.name.split(".")[1] not in ("cli", "__main__")
    and module.name not in ("regard.model.kernels.triton_tiles", "regard.sklearn")  # these need Triton, scikit-learn
    and not module.name.startswith("regard.serve.http")  # which needs FastAPI
]


def child(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def tops(code: str) -> set[str]:
    """Packages that are loaded after running the code."""
    options = child(
        f"{code}\nimport json, sys; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    )
    return set(json.loads(options.splitlines()[-1]))


def test_the_core_imports_only_what_it_is_built_on() -> None:
    """Every module but the command line, against the packages it may use with all that those bring along."""
    allowed = tops(f"import {', '.join(CORE)}, safetensors.torch, torch.nn.attention.flex_attention")
    result = tops(f"import {', '.join(MODULES)}")
    assert {"torch", "tokenizers", "safetensors", "regard"} <= result
    assert result - allowed - set(sys.stdlib_module_names) - {"regard", "__editable___regard_finder"} == set()
    assert result.isdisjoint(FORBIDDEN)


TIMED = """
import time
start = time.process_time()
{first}
middle = time.process_time()
{second}
print(middle - start, time.process_time() - start)
"""


def costs(first: str, second: str) -> tuple[float, float]:
    """Processor seconds of a statement in a fresh interpreter, and of both; a busy machine slows them alike."""
    one, both = child(TIMED.format(first=first, second=second)).split()
    return float(one), float(both)


@pytest.mark.alone
def test_importing_costs_little_more_than_torch() -> None:
    """With all that loading a model needs. `import regard` alone loads no torch: tests/cli/test_main.py."""
    ratios = [both / torch for torch, both in (costs("import torch", "import regard; regard.load") for _ in range(3))]
    assert statistics.median(ratios) < 1.2, ratios


ARM = platform.machine().lower() in ("aarch64", "arm64")
X86 = platform.machine().lower() in ("x86_64", "amd64")
OURS = ("MIMALLOC_", "ONEDNN_", "DNNL_", "GOMP_", "OMP_WAIT_POLICY")
on_arm = pytest.mark.skipif(not ARM, reason="set on ARM alone")
on_x86 = pytest.mark.skipif(not X86, reason="set on x86 alone")


def run_with(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The code in a fresh interpreter, without what this one has set for torch's libraries."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=clean | variables, capture_output=True, text=True, check=True)


@on_arm
@pytest.mark.parametrize(("own", "expected"), [({}, "1000"), ({"MIMALLOC_PURGE_DELAY": "7"}, "7")])
def test_freed_memory_is_kept_for_a_while(own: dict[str, str], expected: str) -> None:
    """A value of the user's own stays."""
    message = run_with("import os, regard; print(os.environ['MIMALLOC_PURGE_DELAY'])", **own)
    assert message.stdout.strip() == expected


@on_arm
def test_torch_takes_over_how_long_freed_memory_is_kept() -> None:
    """Asked of the allocator itself, which tells its options where it is asked to."""
    message = run_with("import regard; regard.load", MIMALLOC_VERBOSE="1").stderr
    if "mimalloc" not in message:
        pytest.skip("this torch has another allocator")
    assert "option 'purge_delay': 1000" in message


@on_arm
@pytest.mark.parametrize(
    ("own", "shown"),
    [({}, "0"), ({"ONEDNN_JIT_PROFILE": "1"}, "1"), ({"DNNL_JIT_PROFILE": "1"}, "None")],
)
def test_profiling_of_onednn_is_switched_off_unless_set(own: dict[str, str], shown: str) -> None:
    message = run_with("import os, regard; print(os.environ.get('ONEDNN_JIT_PROFILE'))", **own)
    assert message.stdout.strip() == shown


COMPUTE = """
import os, regard, torch
torch.nn.Linear(64, 64)(torch.ones(32, 64)).sum().backward()
path = f"/tmp/perf-{os.getpid()}.map"
print(os.path.exists(path))
if os.path.exists(path):
    os.unlink(path)
"""


@on_arm
def test_a_process_that_computes_leaves_no_profile_behind() -> None:
    assert run_with(COMPUTE).stdout.strip() == "False"


@on_x86
@pytest.mark.parametrize(
    ("own", "shown"),
    [({}, "3000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")],
)
def test_threads_that_wait_leave_their_cores_soon(own: dict[str, str], shown: str) -> None:
    """A value of the user's own stays."""
    message = run_with("import os, regard; print(os.environ.get('GOMP_SPINCOUNT'))", **own)
    assert message.stdout.strip() == shown


@on_x86
def test_openmp_takes_over_how_long_threads_wait() -> None:
    """Asked of OpenMP itself, which tells its settings where it is asked to."""
    message = run_with("import regard; regard.load", OMP_DISPLAY_ENV="VERBOSE").stderr
    if "GOMP_SPINCOUNT" not in message:
        pytest.skip("this torch has another OpenMP")
    assert "GOMP_SPINCOUNT = '3000'" in message


OTHER = """
import os, platform
platform.machine = lambda: "riscv64"
import regard
print([name for name in os.environ if name.startswith(("MIMALLOC_", "ONEDNN_", "GOMP_"))])
"""


def test_nothing_is_set_on_other_processors() -> None:
    assert run_with(OTHER).stdout.strip() == "[]"


@pytest.mark.skipif(importlib.util.find_spec("fastapi") is None, reason="needs the extra serve")
def test_the_process_that_answers_http_imports_no_torch() -> None:
    result = tops("import regard.cli, regard.serve.model_table, regard.serve.http.run_server")
    assert result.isdisjoint({"torch", "numpy", "tokenizers"})
