"""Run the application on a port: load beside it, drain on SIGTERM, load again on SIGHUP."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any

import uvicorn

from regard.errors import RegardError
from regard.serve.api_keys import ApiKeys
from regard.serve.http.app import create_app
from regard.serve.http.connection import limited_protocol
from regard.serve.http.guard import LOG, JsonFormatter
from regard.serve.http.metrics import ServeMetrics
from regard.serve.http.mounted import Page
from regard.serve.model_table import ModelTable

KEEP_ALIVE_SECONDS = 30  # that a connection stays open between two requests


class DrainingServer(uvicorn.Server):
    """uvicorn that refuses new work as soon as it gets the signal to stop, and finishes what is in progress."""

    table: ModelTable

    def handle_exit(self, sig: int, frame: Any) -> None:
        if not self.should_exit:  # in a thread: the signal may have come while a line was written
            fields = {"signal": signal.Signals(sig).name, "seconds": self.table.limits.drain_seconds}
            threading.Thread(target=LOG.info, args=("draining",), kwargs={"extra": {"fields": fields}}).start()
        self.table.draining = True
        self.force_exit = self.should_exit and sig == signal.SIGINT  # Ctrl-C twice
        self.should_exit = True  # uvicorn's own method would raise the signal again at the end


def run_server(
    table: ModelTable, listener: socket.socket, *, keys: ApiKeys, pages: Mapping[str, Page] | None = None
) -> None:
    """Serve until SIGINT or SIGTERM, on a socket of `open_socket`. The table is loading, see `start_loading`."""
    limits = table.limits
    metrics = ServeMetrics()
    table.observe = metrics.observe
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
    signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=_reload, args=(table,), daemon=True).start())
    table.when_loaded(lambda: _loaded(table, server))
    server.run(sockets=[listener])
    table.close(seconds=limits.drain_seconds)
    LOG.info("stopped")
    if table.error is not None:
        raise table.error


def _loaded(table: ModelTable, server: uvicorn.Server) -> None:
    if table.error is None:
        LOG.info("ready", extra={"fields": {"models": list(table.models)}})
    else:
        server.should_exit = True


def _reload(table: ModelTable) -> None:
    try:
        LOG.info("reloaded", extra={"fields": {"models": table.reload()}})
    except RegardError as error:  # the old models stay
        LOG.error("reload failed", extra={"fields": {"error": str(error)}})
    except Exception:
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
