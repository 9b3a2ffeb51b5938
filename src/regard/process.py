"""Variables of the process that make torch faster on a CPU: set on request, before torch is imported."""

from __future__ import annotations

import os
import platform

# A thread of OpenMP that waits for others keeps its core busy for 300,000 rounds (milliseconds), even if the thread
# that it waits for needs that core: beside one busy program on two x86 cores, a text takes seven times as long.
SHORT_WAIT = ("GOMP_SPINCOUNT", "3000")


def prepare_process() -> dict[str, str]:
    """Set the variables that make torch faster on this CPU; returns those that were set.

    Call it before torch is imported, since torch reads them once. Variables that are set already keep their values.
    The command line and the workers of the server call it; `import regard` does not.

    On x86, threads that wait for others give their cores away soon. On ARM, torch keeps freed memory for a second in
    place of 10 ms, which takes up to a sixth of a training step otherwise, and oneDNN leaves no file perf-PID.map in
    the system's temporary folder.

    Example:
        >>> import regard
        >>> regard.prepare_process()  # doctest: +SKIP
        {'GOMP_SPINCOUNT': '3000'}
    """
    variables: dict[str, str] = {}
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        variables["MIMALLOC_PURGE_DELAY"] = "1000"
        if "DNNL_JIT_PROFILE" not in os.environ:  # its older name, which the newer one would override
            variables["ONEDNN_JIT_PROFILE"] = "0"
    elif machine in ("x86_64", "amd64") and "OMP_WAIT_POLICY" not in os.environ:
        variables.update([SHORT_WAIT])
    missing = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(missing)
    return missing
