"""Answers to texts that were asked before, up to a number of bytes."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

ENTRY_BYTES = 200  # of an entry besides its text: the objects of Python


class AnswerCache:
    """The answers that were used last. The caller holds a lock."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._entries: OrderedDict[Hashable, tuple[str, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Any | None:
        """The stored answer, a copy; None if there is none."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return json.loads(self._entries[key][0])

    def put(self, key: Hashable, answer: Any) -> None:
        """Store an answer; those not used for longest make place for it. One above the limit is not stored."""
        if not self.max_bytes or key in self._entries:
            return
        text = json.dumps(answer)
        size = len(text) + len(str(key)) + ENTRY_BYTES
        if size > self.max_bytes:
            return
        self._entries[key] = (text, size)
        self.bytes += size
        while self.bytes > self.max_bytes:
            _, (_, old_size) = self._entries.popitem(last=False)
            self.bytes -= old_size
