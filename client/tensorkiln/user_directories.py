"""Where a user's files belong on this system, and what a path that somebody states means on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .errors import RequestError


def stated_path(name: str, stated: str | os.PathLike[str]) -> Path:
    """The absolute path that the setting called `name` states, `~` spelled out; RequestError when there can be none."""
    # Of somebody who has no home, or of a working directory that is gone, pathlib says so in errors of its own.
    with suppress(RuntimeError, OSError):
        path = Path(stated).expanduser().absolute()
        if "\0" not in str(path):
            return path
    raise RequestError(f"{name} is {str(stated)!r}: that names no path here; give an absolute path.")


def user_cache_directory(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """What can be made again: `$XDG_CACHE_HOME/kiln` or `~/.cache/kiln`; on macOS and Windows what is usual there.

    RequestError for a user without a home directory.
    """
    fallbacks = {"darwin": Path("Library/Caches"), "win32": Path("AppData/Local")}
    stated = environment.get("LOCALAPPDATA" if system == "win32" else "XDG_CACHE_HOME", "")
    return _directory(stated, fallbacks.get(system, Path(".cache")), "KILN_HOME")


def user_config_directory(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """What must be kept: `$XDG_CONFIG_HOME/kiln` or `~/.config/kiln`; on macOS and Windows what is usual there.

    RequestError for a user without a home directory.
    """
    fallbacks = {"darwin": Path("Library/Application Support"), "win32": Path("AppData/Roaming")}
    stated = environment.get("APPDATA" if system == "win32" else "XDG_CONFIG_HOME", "")
    return _directory(stated, fallbacks.get(system, Path(".config")), "KILN_CONFIG_DIR")


def _directory(stated: str, fallback: Path, variable: str) -> Path:
    """`variable` is what names another directory, for somebody who has no home."""
    if os.path.isabs(stated):
        return Path(stated) / "kiln"
    try:
        return Path.home() / fallback / "kiln"
    except RuntimeError:
        raise RequestError(f"This user has no home directory: set HOME or {variable} to an absolute path.") from None
