"""Where a user's files belong on this system."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def user_cache_directory(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """What can be made again: `$XDG_CACHE_HOME/kiln` or `~/.cache/kiln`; on macOS and Windows what is usual there."""
    fallbacks = {"darwin": Path("Library/Caches"), "win32": Path("AppData/Local")}
    return _directory("XDG_CACHE_HOME", "LOCALAPPDATA", fallbacks.get(system, Path(".cache")), environment, system)


def user_config_directory(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """What must be kept: `$XDG_CONFIG_HOME/kiln` or `~/.config/kiln`; on macOS and Windows what is usual there."""
    fallbacks = {"darwin": Path("Library/Application Support"), "win32": Path("AppData/Roaming")}
    return _directory("XDG_CONFIG_HOME", "APPDATA", fallbacks.get(system, Path(".config")), environment, system)


def _directory(xdg: str, windows: str, fallback: Path, environment: Mapping[str, str], system: str) -> Path:
    stated = environment.get(windows if system == "win32" else xdg, "")
    return (Path(stated) if os.path.isabs(stated) else Path.home() / fallback) / "kiln"
