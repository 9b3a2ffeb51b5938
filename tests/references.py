"""The reference library, imported when a test first uses it: it takes seconds, and every worker collects all tests."""

from __future__ import annotations

import importlib
from typing import Any


class _Transformers:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("transformers"), name)


transformers: Any = _Transformers()
