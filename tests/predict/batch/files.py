"""Files of a test."""

from __future__ import annotations

from pathlib import Path


def put(path: Path, content: str) -> str:
    path.write_text(content)
    return str(path)
