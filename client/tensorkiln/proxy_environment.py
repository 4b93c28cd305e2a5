"""Proxy and certificate variables of the environment, which the HTTP client reads."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from .errors import RequestError

_HEEDED: Final = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"}
)


@contextmanager
def environment_errors() -> Generator[None]:
    """Convert a failure to create an HTTP client to a RequestError with the names of the variables that it reads.

    Their values are not shown: a proxy URL may contain a password.
    """
    import httpx2

    try:
        yield
    except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
        named = sorted(name for name, value in os.environ.items() if value and name.upper() in _HEEDED)
        if not named:
            raise
        raise RequestError(
            f"No connection can be made with the environment variables {', '.join(named)}: {_told(error)}; "
            "correct or unset them."
        ) from None


def _told(error: Exception) -> str:
    if isinstance(error, ImportError):
        return "a proxy for SOCKS needs the package socksio"
    if isinstance(error, OSError):
        return f"a file of certificates or of keys cannot be used ({error.strerror or type(error).__name__})"
    return "the URL of a proxy cannot be used"
