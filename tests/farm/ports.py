"""Free ports of the loopback."""

from __future__ import annotations

import socket
import time
from contextlib import suppress


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
