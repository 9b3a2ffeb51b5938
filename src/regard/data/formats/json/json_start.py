"""What the first bytes of a JSON file show: whether its rows are inside one value."""

from __future__ import annotations

import json
import re

NESTED = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*(?=\{|\[\s*")|\{.{0,4096}?"data"\s*:\s*\[)', re.DOTALL)
MAX_PARTS = 4_000_000  # lists and objects in one row


def is_nested(head: bytes) -> bool:
    """Whether a file begins as one JSON value with its rows inside, such as SQuAD."""
    return NESTED.match(head) is not None


def too_many_parts(text: str, start: int = 0) -> bool:
    """Whether JSON has so many lists and objects that parsing it would take gigabytes of memory."""
    return len(text) - start > MAX_PARTS and text.count("{", start) + text.count("[", start) > MAX_PARTS


def has_first_item(head: bytes) -> bool:
    """Whether the beginning of a nested file contains a whole row, so that its columns are known."""
    match = NESTED.match(head)
    if match is None or b'"paragraphs"' in head:
        return match is not None
    try:
        text = head[match.end() :].decode("utf-8", "replace").lstrip()
        return too_many_parts(text) or json.JSONDecoder().raw_decode(text) is not None
    except (ValueError, RecursionError):
        return False
