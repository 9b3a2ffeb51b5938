from __future__ import annotations

import socket

import pytest

from regard.errors import InputError
from regard.serve.listener import address, open_socket


def test_a_port_in_use() -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        with pytest.raises(InputError, match="cannot be used"):
            open_socket("127.0.0.1", used.getsockname()[1])
    with pytest.raises(InputError, match="expected 0 to 65535"):
        open_socket("127.0.0.1", 70_000)
    with open_socket("127.0.0.1", 0) as listener:
        assert address(listener, "127.0.0.1") == f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert address(listener, "::1").startswith("http://[::1]:")
