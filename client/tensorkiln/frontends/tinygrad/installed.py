"""Import of tinygrad, at first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from typing import Any, Final

from ...errors import RequestError

SUPPORTED: Final = "0.14"
"""The only supported minor version: the meaning of tinygrad's operations changes between minor versions."""


@cache
def installed(name: str = "tinygrad") -> Any:
    """The tinygrad module `name`. RequestError when tinygrad is not installed or has another version."""
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
