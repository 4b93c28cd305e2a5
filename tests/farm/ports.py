"""Free ports of the loopback."""

from __future__ import annotations

import secrets
import socket
import time
from contextlib import suppress
from typing import Final

_OURS: Final = range(20_000, 32_768)
"""Below those that Linux gives connections by itself, which might take one before somebody listens on it."""

_given: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on now, and that was not given before."""
    while True:
        port = secrets.choice(_OURS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


def answers(port: int, question: bytes) -> bool:
    """Whether somebody listens on a port, and has something to say to this."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(question)
            return bool(connection.recv(1))
    except OSError:
        return False


def await_answer(port: int, seconds: float, question: bytes) -> None:
    """Wait until there is an answer on a port. TimeoutError when there is none in time."""
    end = time.monotonic() + seconds
    while not answers(port, question):
        if time.monotonic() > end:
            raise TimeoutError(f"no answer on port {port} after {seconds:g} s")
        time.sleep(0.05)


def await_silence(port: int, seconds: float) -> None:
    """Wait until a port can be listened on again. TimeoutError when it cannot in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return
        time.sleep(0.05)
    raise TimeoutError(f"port {port} is in use after {seconds:g} s")
