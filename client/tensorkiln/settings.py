"""Where the client finds its service and keeps its files.

An argument wins over an environment variable, which wins over the file `config.toml`, which wins over the default:

| variable | meaning | default |
|---|---|---|
| `KILN_URL` | base URL of a service | unset: an embedded service |
| `KILN_HOME` | directory of caches and of the embedded service's store | `$XDG_CACHE_HOME/kiln` or `~/.cache/kiln` |
| `KILN_API_KEY` | API key or token that is sent to the service at that URL | unset: none |
| `KILN_TIMEOUT_S` | seconds that one call may take, retries included | 220 |
| `KILN_STARTUP_TIMEOUT_S` | seconds that an embedded service may take to start | 60 |
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from .config_file import Variables
from .errors import RequestError
from .user_directories import user_cache_directory

TIMEOUT_S = 220.0
STARTUP_TIMEOUT_S = 60.0
MAX_TIMEOUT_S: Final = 2_000_000.0
"""Python passes socket timeouts in milliseconds as 31 bits: from 2 147 484 s on, a request may time out at once."""

_MAX_LABEL: Final = 63
"""The most bytes of one label of a host name (RFC 1035)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`url` is None for an embedded service; `timeout_s` and `startup_timeout_s` are in seconds.

    `api_key` is None for a service without authentication.
    """

    url: str | None
    home: Path
    timeout_s: float
    startup_timeout_s: float
    api_key: str | None = field(default=None, repr=False)


def resolve_settings(
    url: str | None = None,
    *,
    timeout_s: float | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    api_key: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings of a client made with these arguments; RequestError names an invalid value.

    An empty `url` means an embedded service, regardless of the environment. The API key of the file is used only for
    the URL of the file.
    """
    variables = Variables.of(environment)
    chosen = _url(variables.get("KILN_URL") if url is None else url)
    key = variables.get("KILN_API_KEY") if api_key is None else api_key
    is_of_file = api_key is None and "KILN_API_KEY" not in environment
    if is_of_file and chosen != _url(variables.file.get("KILN_URL")):
        key = None
    return Settings(
        url=chosen,
        home=_home(cache_dir, variables),
        timeout_s=_seconds("timeout_s", timeout_s, "KILN_TIMEOUT_S", variables, TIMEOUT_S),
        startup_timeout_s=_seconds("startup_timeout_s", None, "KILN_STARTUP_TIMEOUT_S", variables, STARTUP_TIMEOUT_S),
        api_key=checked_key(key),
    )


def checked_key(key: str | None) -> str | None:
    """`key` without surrounding white space; None for an empty key. RequestError when it is invalid in a header."""
    stripped = key.strip() if key else ""
    if not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise RequestError("The API key has characters that no key or token has; copy it again.")
    return stripped or None


def _url(text: str | None) -> str | None:
    if not text:
        return None
    authority = re.split(r"[/?#\\]", text.partition("://")[2] or text, maxsplit=1)[0]
    if "@" in authority:
        raise RequestError(
            "The service's URL has a user name in it: remove the part before the @, and give an API key."
        )
    if not _can_be_asked(text):
        # Text before an @ may be a password, so do not show it.
        shown = "not one, and is not shown here" if "@" in text else repr(text)
        raise RequestError(f"The service's URL is {shown}: write it like http://host:8080.")
    parts = urlsplit(text)
    if parts.query or parts.fragment:
        raise RequestError(f"The service's URL is {text!r}: leave out the query and the fragment.")
    return text.rstrip("/")


def _can_be_asked(url: str) -> bool:
    """Whether the text of `url` is a valid service URL. Checked here because later readers raise various errors."""
    import httpx2

    try:
        parts = urlsplit(url)
        # Reading the port validates it.
        is_service = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
        labels = httpx2.URL(url).raw_host.removesuffix(b".").split(b".")
    except (ValueError, httpx2.InvalidURL):
        return False
    return is_service and all(0 < len(label) <= _MAX_LABEL for label in labels)


def _home(cache_dir: str | os.PathLike[str] | None, variables: Variables) -> Path:
    chosen = variables.path_of("cache_dir", cache_dir, "KILN_HOME")
    return chosen if chosen is not None else user_cache_directory(variables.environment)


def _seconds(argument: str, value: float | None, variable: str, variables: Variables, default: float) -> float:
    stated = variables.get(variable) or default
    name, written = (argument, value) if value is not None else (variables.name(variable), stated)
    try:
        seconds = float(written)
    except ValueError:
        seconds = nan
    except OverflowError:
        seconds = inf
    if not 0 < seconds <= MAX_TIMEOUT_S:
        shown = repr(written) if isinstance(written, str) else f"{seconds:g}"
        raise RequestError(f"{name} is {shown}: give a number of seconds above 0, and at most {MAX_TIMEOUT_S:.0f}.")
    return seconds
