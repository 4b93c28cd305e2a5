"""The user's cache and configuration directories, and resolution of paths in settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .errors import RequestError


def stated_path(name: str, stated: str | os.PathLike[str]) -> Path:
    """The absolute path of the setting `name`, with `~` expanded; RequestError for an invalid path."""
    # pathlib raises its own errors for a user without a home, or when the working directory is gone.
    with suppress(RuntimeError, OSError):
        path = Path(stated).expanduser().absolute()
        if "\0" not in str(path):
            return path
    raise RequestError(f"{name} is {str(stated)!r}: that names no path here; give an absolute path.")


def user_cache_directory(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """The directory for caches: `$XDG_CACHE_HOME/kiln` or `~/.cache/kiln`; the system's default on macOS and Windows.

    RequestError for a user without a home directory.
    """
    fallbacks = {"darwin": Path("Library/Caches"), "win32": Path("AppData/Local")}
    stated = environment.get("LOCALAPPDATA" if system == "win32" else "XDG_CACHE_HOME", "")
    return _directory(stated, fallbacks.get(system, Path(".cache")), "KILN_HOME")


def user_config_directory(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """The directory for configuration: `$XDG_CONFIG_HOME/kiln` or `~/.config/kiln`, or as usual on macOS and Windows.

    RequestError for a user without a home directory.
    """
    fallbacks = {"darwin": Path("Library/Application Support"), "win32": Path("AppData/Roaming")}
    stated = environment.get("APPDATA" if system == "win32" else "XDG_CONFIG_HOME", "")
    return _directory(stated, fallbacks.get(system, Path(".config")), "KILN_CONFIG_DIR")


def _directory(stated: str, fallback: Path, variable: str) -> Path:
    """The directory `stated`, else the fallback in the home; RequestError, naming `variable`, without a home."""
    if os.path.isabs(stated):
        return Path(stated) / "kiln"
    try:
        return Path.home() / fallback / "kiln"
    except RuntimeError:
        raise RequestError(f"This user has no home directory: set HOME or {variable} to an absolute path.") from None
