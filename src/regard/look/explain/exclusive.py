"""One explanation of a network at a time: methods hook into the network, and two threads must not meet there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from torch import nn

_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_LOCK = threading.Lock()  # of the table


@contextmanager
def exclusive(network: nn.Module) -> Iterator[None]:
    """Wait until no other thread explains with this network. The same thread may enter again."""
    with _LOCK:
        lock = _LOCKS.setdefault(network, threading.RLock())
    with lock:
        yield
