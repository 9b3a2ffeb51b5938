"""Run the application on a port: load beside it, drain on SIGTERM, load again on SIGHUP."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import uvicorn

from regard.errors import InputError
from regard.serve.api_keys import ApiKeys
from regard.serve.http.app import create_app
from regard.serve.http.connection import limited_protocol
from regard.serve.http.guard import LOG, JsonFormatter
from regard.serve.http.metrics import ServeMetrics
from regard.serve.http.mounted import Page
from regard.serve.model_table import ModelTable, named_sources
from regard.serve.settings import ServeLimits

BACKLOG = 2048  # connections that wait to be accepted
KEEP_ALIVE_SECONDS = 30  # that a connection stays open between two requests


class DrainingServer(uvicorn.Server):
    """uvicorn that refuses new work as soon as it gets the signal to stop, and finishes what is in progress."""

    table: ModelTable

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.table.draining = True
        self.force_exit = self.should_exit and sig == signal.SIGINT  # Ctrl-C twice
        self.should_exit = True  # uvicorn's own method would raise the signal again at the end


def open_socket(host: str, port: int) -> socket.socket:
    """A listening address. Raises InputError for a port that is in use or does not exist."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port {port} does not exist; expected 0 to 65535.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # requests wait while the server starts
    except OSError as error:
        listener.close()
        raise InputError(
            f"port {port} of {host} cannot be used ({error.strerror or error}). Choose another with --port, or 0 for "
            "any free one."
        ) from error
    return listener


def run_server(
    sources: Sequence[str],
    *,
    host: str,
    port: int,
    limits: ServeLimits,
    keys: ApiKeys,
    on_listen: Callable[[str], None],
    worker_process: bool = True,
    pages: Mapping[str, Page] | None = None,
    **load_options: Any,
) -> None:
    """Serve until SIGINT or SIGTERM. `on_listen` receives the address, before the models are loaded."""
    named_sources(sources)  # an error for equal names, before anything is opened
    listener = open_socket(host, port)
    metrics = ServeMetrics()
    table = ModelTable(limits, observe=metrics.observe, worker_process=worker_process, **load_options)
    table.sources = named_sources(sources)
    start_logging()
    server = DrainingServer(
        uvicorn.Config(
            create_app(table, keys=keys, metrics=metrics, pages=pages),
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=limits.max_header_bytes,
            timeout_graceful_shutdown=int(limits.drain_seconds),
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            http=limited_protocol(max_sockets=2 * limits.max_connections, header_seconds=limits.header_seconds),
            ws="none",
        )
    )
    server.table = table
    loading = threading.Thread(target=_load, args=(table, sources, server), name="load", daemon=True)
    shown = f"[{host}]" if ":" in host else host
    on_listen(f"http://{shown}:{listener.getsockname()[1]}")
    signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=_reload, args=(table,), daemon=True).start())
    loading.start()
    server.run(sockets=[listener])
    table.close(seconds=limits.drain_seconds)
    if table.error is not None:
        raise table.error


def _load(table: ModelTable, sources: Sequence[str], server: uvicorn.Server) -> None:
    try:
        table.load_all(sources)
        LOG.info("ready", extra={"fields": {"models": list(table.models)}})
    except Exception as error:
        table.error = error
        server.should_exit = True


def _reload(table: ModelTable) -> None:
    try:
        LOG.info("reloaded", extra={"fields": {"models": table.reload()}})
    except Exception:  # the old models stay
        LOG.exception("reload failed")


def start_logging() -> None:
    """One JSON object per line on stderr; a full disk or a closed pipe stops no request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    for name in ("regard.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO if name == "regard.serve" else logging.WARNING)
        logger.propagate = False
