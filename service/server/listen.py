"""The socket that the service listens on, and which callers need a credential there."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from service.identity.authenticator import Authenticator, is_loopback
from service.identity.keyring import Keyring
from service.settings import Settings
from tensorkiln.errors import UnavailableError

BACKLOG: Final = 1024
READY: Final = "tensorkiln is ready on"
"""The beginning of the line that states the address that a process serves at."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound socket, the address under which a client finds it, and the socket file to remove at the end."""

    socket: socket.socket
    address: str
    path: Path | None = None

    def close(self) -> None:
        self.socket.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def listen(host: str, port: int, uds: str | None) -> Listener:
    """Bind `host`:`port` (0: any port), or the Unix socket `uds` for this user. UnavailableError when that fails."""
    bound: socket.socket | None = None
    try:
        if uds is not None:
            _remove_stale(Path(uds))
            bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            mask = os.umask(0o177)
            try:
                bound.bind(uds)
            finally:
                os.umask(mask)
            return Listener(bound, f"unix:{uds}", Path(uds))
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        return Listener(bound, f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}")
    except OSError as error:
        if bound is not None:
            bound.close()
        where = uds if uds is not None else f"{host}:{port}"
        other = "another path with --uds" if uds is not None else "another address with --host and --port (0: any port)"
        raise UnavailableError(
            f"The service cannot listen on {where}: {error.strerror or error}; give it {other}."
        ) from None


def _remove_stale(path: Path) -> None:
    """Remove a socket file that nobody listens on any more."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(ConnectionRefusedError):
            probe.connect(str(path))
            return
        path.unlink()


def authenticator(settings: Settings) -> Authenticator:
    """The authenticator of these settings. UnavailableError when the keyring cannot be used."""
    return Authenticator(Keyring(settings.identity), settings.oidc, is_off=settings.auth == "off")


def require_private_address(settings: Settings, host: str, uds: str | None) -> None:
    """Log if no credential is required. UnavailableError if the address is then open to other machines."""
    if authenticator(settings).asks:
        return
    if uds is None and not is_loopback(host):
        raise UnavailableError(
            f"Without API keys or issuers of tokens the service listens on the loopback only, not on {host}: make a "
            "key with `python -m tensorkiln_server identity make --tenant NAME`, or set KILN_OIDC."
            if settings.auth == "auto"
            else f"With KILN_AUTH=off the service listens on the loopback only, not on {host}."
        )
    _log.warning("no credential is required: every user of this machine is served", auth=settings.auth)
