"""The address that a server listens on. It is opened before anything else is imported, so that requests can wait."""

from __future__ import annotations

import socket

from regard.errors import InputError

BACKLOG = 2048  # connections that wait to be accepted


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


def address(listener: socket.socket, host: str) -> str:
    """The URL of a socket that was opened for a host."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"
