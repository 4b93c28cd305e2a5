"""Free ports of the loopback."""

from __future__ import annotations

import secrets
import socket
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
