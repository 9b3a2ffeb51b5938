"""Tiny models behind a table, and an HTTP client for it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient
from tests.look.tiny_models import CONTEXT, KINDS, TEXT, model

from regard.predict.model import Model
from regard.serve.api_keys import ApiKeys
from regard.serve.http.app import create_app
from regard.serve.model_table import ModelTable
from regard.serve.served_model import ServedModel
from regard.serve.settings import ServeLimits

__all__ = ["CONTEXT", "TEXTS", "add_model", "client_of", "table_of", "tiny", "until"]
TEXTS = [" ".join([TEXT] * count) for count in (1, 3, 1, 2, 30, 1)] + [CONTEXT]


@functools.cache
def tiny(kind: str) -> Model:
    """A tiny model of a kind; 64 tokens per window for the encoders."""
    name, heads, _ = KINDS[kind]
    one = model(name, heads, max_tokens=64 if name == "tiny-bert" else None)
    one.network.eval()
    return one


def add_model(table: ModelTable, kind: str) -> None:
    """Serve a tiny model in this process, which a test starts faster than another one."""
    table.models[kind] = ServedModel(kind, "", tiny(kind), table.limits, lambda name, value: table.observe(name, value))


@contextmanager
def table_of(*kinds: str, **limits: Any) -> Iterator[ModelTable]:
    table = ModelTable(ServeLimits(**{"batch_tokens": 64, **limits}))
    for kind in kinds:
        add_model(table, kind)
    try:
        yield table
    finally:
        table.close(seconds=5)


@contextmanager
def client_of(*kinds: str, keys: ApiKeys | None = None, **limits: Any) -> Iterator[TestClient]:
    with (
        table_of(*kinds, **limits) as table,
        TestClient(create_app(table, keys=keys), raise_server_exceptions=False) as client,
    ):
        yield client


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
