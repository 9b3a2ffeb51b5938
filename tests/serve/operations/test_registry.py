from __future__ import annotations

import subprocess
import sys

from regard.serve.operations.operation import Operation
from regard.serve.operations.registry import OPERATIONS, operation_class
from regard.serve.served import KINDS


def test_every_kind_has_a_class() -> None:
    assert tuple(OPERATIONS) == KINDS
    assert all(issubclass(operation_class(kind), Operation) for kind in KINDS)  # type: ignore[arg-type]


def test_a_server_of_vectors_starts_without_the_tasks() -> None:
    code = (
        "import sys, regard.serve.served_model, regard.serve.operations.embedding; print('regard.tasks' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
