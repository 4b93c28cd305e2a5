"""tinygrad itself, which is imported when something of it is used."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from typing import Any, Final

from ...errors import RequestError

SUPPORTED: Final = "0.14"
"""The minor version whose graphs are read: tinygrad changes what its operations mean from one to the next."""


@cache
def installed(name: str = "tinygrad") -> Any:
    """The module of tinygrad called `name`. RequestError where it is not installed, or another version is."""
    try:
        found, version = import_module(name), metadata.version("tinygrad")
    except ImportError as error:
        raise RequestError(
            f"tensorkiln.frontends.tinygrad needs tinygrad ({error}): `pip install 'tensorkiln[tinygrad]'`."
        ) from None
    if version.split(".")[:2] != SUPPORTED.split("."):
        raise RequestError(
            f"tinygrad {version} is installed, and graphs of {SUPPORTED} are read: "
            f"`pip install 'tinygrad=={SUPPORTED}.*'`."
        )
    return found
