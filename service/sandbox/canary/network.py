"""Attempts at having a socket, and at reaching somebody with it."""

from __future__ import annotations

import socket
from typing import Final

from .victim import Attempts, Victim

_TIMEOUT_S: Final = 1.0
_FAMILIES: Final = {"tcp": socket.AF_INET, "udp": socket.AF_INET, "unix": socket.AF_UNIX}


def connections(victim: Victim) -> Attempts:
    """Sending something to each of the addresses that the victim names."""
    return {
        f"connect by {kind} to {address}": lambda _, kind=kind, address=address: _connect(kind, address)
        for kind, address in victim.addresses
    }


def _connect(kind: str, address: tuple[str, int] | str) -> None:
    sort = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
    with socket.socket(_FAMILIES[kind], sort) as channel:
        channel.settimeout(_TIMEOUT_S)
        channel.connect(address)
        channel.send(b"out")


NETWORK: Final[Attempts] = {
    "have a TCP socket": lambda _: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close(),
    "have a UDP socket": lambda _: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
    "have a Unix socket": lambda _: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
    "have a netlink socket": lambda _: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
}
