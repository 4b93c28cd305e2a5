"""A client's policy for the programs that it runs.

| variable | meaning | default |
|---|---|---|
| `KILN_TRUSTED_KEYS` | the only keys to believe, with commas between: in base64url, or files of JSON Web Keys | unset |
| `KILN_MIN_ISOLATION` | the least isolation of a compile: none, process, landlock+seccomp, external | `process` |
| `KILN_CONFIG_DIR` | `config.toml` and the keys that services showed at first use | `~/.config/kiln` or the system's |
| `KILN_CACHE_DIR` | directory of the programs and artifacts that are kept | `$KILN_HOME` |
| `KILN_CACHE_MIB` | MiB of artifacts kept there | 1024 |
| `KILN_OFFLINE` | `1`: use what is kept there and no service | unset |
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ..config_file import Variables, config_directory
from ..errors import RequestError
from ..reasons import reason
from ..user_directories import stated_path
from .isolation import LEVELS
from .keys import KeySet, PublicKey

CACHE_MIB: Final = 1024
MINIMUM_ISOLATION: Final = "process"
_YES: Final = {"1": True, "true": True, "yes": True, "": False, "0": False, "false": False, "no": False}
_MAX_MIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Policy:
    """`pins` are the only trusted keys; without any, the keys that a service presents at first use are trusted."""

    pins: tuple[PublicKey, ...]
    minimum_isolation: str
    config: Path
    cache: Path
    cache_bytes: int
    offline: bool


def resolve_policy(
    home: Path,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    trusted_keys: Sequence[str] | None = None,
    min_isolation: str | None = None,
    offline: bool | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Policy:
    """The policy of a client made with these arguments; RequestError names an invalid value."""
    variables = Variables.of(environment)
    pins, level = resolve_demands(trusted_keys, min_isolation, environment)
    cache = variables.path_of("cache_dir", cache_dir, "KILN_CACHE_DIR")
    return Policy(
        pins=pins,
        minimum_isolation=level,
        config=config_directory(environment),
        cache=cache if cache is not None else home,
        cache_bytes=_mebibytes(variables) << 20,
        offline=_is_offline(variables) if offline is None else offline,
    )


def resolve_demands(
    trusted_keys: Sequence[str] | None, min_isolation: str | None, environment: Mapping[str, str] = os.environ
) -> tuple[tuple[PublicKey, ...], str]:
    """The pinned keys and the least isolation. RequestError names an invalid value.

    An empty list of keys is refused, because it might be taken to mean that every key is trusted.
    """
    variables = Variables.of(environment)
    listed = (variables.get("KILN_TRUSTED_KEYS") or "").strip()
    stated = (listed.split(",") if listed else None) if trusted_keys is None else trusted_keys
    level = min_isolation or variables.get("KILN_MIN_ISOLATION") or MINIMUM_ISOLATION
    if level not in LEVELS:
        raise RequestError(f"{level!r} is not an isolation level; the levels are {', '.join(LEVELS)}.")
    name = variables.name("KILN_TRUSTED_KEYS") if trusted_keys is None else "trusted_keys"
    pins = tuple(key for text in stated or () if text.strip() for key in _keys(name, text.strip()))
    if stated is not None and not pins:
        raise RequestError("The list of trusted keys is empty; leave it out to trust keys on first use.")
    return pins, level


def _keys(name: str, text: str) -> tuple[PublicKey, ...]:
    """The key in base64url, or the keys of a file, in the setting `name`."""
    try:
        return (PublicKey.of(text),)
    except ValueError:
        path = stated_path(name, text)
    try:
        return KeySet.model_validate_json(path.read_bytes()).keys
    except OSError as error:
        raise RequestError(
            f"The trusted key {text!r} is neither 32 bytes in base64url nor a file that can be read: {error}."
        ) from None
    except ValidationError as error:
        raise RequestError(
            f"The file {path} is not in the format of GET /keys: {reason(error.errors(include_input=False)[0])}."
        ) from None


def _mebibytes(variables: Variables) -> int:
    text = variables.get("KILN_CACHE_MIB") or str(CACHE_MIB)
    if not text.isascii() or not text.isdigit() or int(text) > _MAX_MIB:
        raise RequestError(f"{variables.name('KILN_CACHE_MIB')} is {text!r}: give a number of MiB.")
    return int(text)


def _is_offline(variables: Variables) -> bool:
    text = variables.get("KILN_OFFLINE") or ""
    if text.lower() not in _YES:
        raise RequestError(f"{variables.name('KILN_OFFLINE')} is {text!r}: give 1 or 0.")
    return _YES[text.lower()]
