"""Which callers need a credential, by the settings."""

from __future__ import annotations

import structlog

from service.identity.authenticator import Authenticator, is_loopback
from service.identity.keyring import Keyring
from service.settings import Settings
from tensorkiln.errors import UnavailableError

_log = structlog.get_logger()


def authenticator(settings: Settings) -> Authenticator:
    """The authenticator of these settings. UnavailableError when the keyring cannot be used."""
    return Authenticator(Keyring(settings.identity_directory), settings.oidc, is_off=settings.auth == "off")


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
