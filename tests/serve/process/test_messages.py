from __future__ import annotations

import socket
import threading

import pytest

from regard.serve.process.messages import read_message, send_message


def test_messages_of_any_size_arrive_in_order() -> None:
    first, second = socket.socketpair()
    messages = [{"a": 1}, ["half \ud83c", 0.1], "x" * 3_000_000, None]
    sender = threading.Thread(target=lambda: [send_message(first, message) for message in messages])
    sender.start()
    assert [read_message(second) for _ in messages] == messages
    sender.join()
    first.close()
    with pytest.raises(EOFError):
        read_message(second)
    second.close()
