"""Importing is light: only the packages the core is built on."""

from __future__ import annotations

import importlib.util
import json
import pkgutil
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


UNCHANGED = """
import gc, os, threading
{first}
before = dict(os.environ), threading.enumerate(), gc.isenabled(), gc.get_threshold()
{second}
assert (dict(os.environ), threading.enumerate(), gc.isenabled(), gc.get_threshold()) == before
"""


@pytest.mark.parametrize(
    ("first", "second"), [("", "import regard"), ("import torch", "from regard import load, train")]
)
def test_importing_changes_nothing_in_the_process(first: str, second: str) -> None:
    """No variable, no thread, no setting of the garbage collection."""
    child(UNCHANGED.format(first=first, second=second))


@pytest.mark.skipif(importlib.util.find_spec("fastapi") is None, reason="needs the extra serve")
def test_the_process_that_answers_http_imports_no_torch() -> None:
    result = tops("import regard.cli, regard.serve.model_table, regard.serve.http.run_server")
    assert result.isdisjoint({"torch", "numpy", "tokenizers"})
