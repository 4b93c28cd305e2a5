"""The user's configuration file `config.toml`, which environment variables override.

Its keys are the variables of `tensorkiln.settings` and `tensorkiln.trust.policy`, without `KILN_` and in lower case. A
variable that is set, even to an empty value, overrides its key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .errors import RequestError
from .user_directories import stated_path, user_config_directory

FILE: Final = "config.toml"
_NUMBER: Final = (int, float)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "url": (str,),
    "api_key": (str,),
    "timeout_s": _NUMBER,
    "startup_timeout_s": _NUMBER,
    "home": (str,),
    "cache_dir": (str,),
    "cache_mib": (int,),
    "trusted_keys": (str, list),
    "min_isolation": (str,),
    "offline": (bool,),
}
_SECRET: Final = frozenset({"api_key"})
_NAMES: Final = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", list: "an array"}


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of the environment, which override those of the file at `path`."""

    environment: Mapping[str, str]
    file: Mapping[str, str]
    path: Path

    @staticmethod
    def of(environment: Mapping[str, str]) -> Variables:
        """Read the configuration. RequestError for an unusable file, or one with an API key that others can read."""
        path = config_directory(environment) / FILE
        return Variables(environment, _read(path), path)

    def get(self, variable: str) -> str | None:
        """The value of a variable, or None."""
        return self.environment.get(variable, self.file.get(variable))

    def path_of(self, argument: str, given: str | os.PathLike[str] | None, variable: str) -> Path | None:
        """The path `given` for the argument, else the variable's path; None when neither is set."""
        if given:
            return stated_path(argument, given)
        stated = self.get(variable)
        return stated_path(self.name(variable), stated) if stated else None

    def name(self, variable: str) -> str:
        """The name of a setting in an error: its variable, or its key and file."""
        if variable in self.environment or variable not in self.file:
            return variable
        return f"{variable.removeprefix('KILN_').lower()} in {self.path}"


def config_directory(environment: Mapping[str, str]) -> Path:
    """The directory of the file and of services' keys: `KILN_CONFIG_DIR` or the system's default.

    RequestError when the user has no such directory.
    """
    stated = environment.get("KILN_CONFIG_DIR")
    return stated_path("KILN_CONFIG_DIR", stated) if stated else user_config_directory(environment)


def _read(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            content, status = file.read(), os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise RequestError(f"The configuration {path} cannot be read: {error}.") from None
    import tomllib

    try:
        stated = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"The configuration {path} is not TOML: {error}.") from None
    if "api_key" in stated:
        _require_private(path, status)
        if "url" not in stated:
            raise RequestError(f"The configuration {path} has an api_key and no url: name the service that it is for.")
    return {f"KILN_{key.upper()}": _text(key, value, path) for key, value in stated.items()}


def _require_private(path: Path, status: os.stat_result) -> None:
    """RequestError when other users can read the file with the API key, or own it."""
    if os.name != "posix":
        return
    if status.st_mode & 0o077:
        raise RequestError(f"Other users can read the api_key in {path}: run `chmod 600 {path}`, and get a new key.")
    if status.st_uid != os.geteuid():
        raise RequestError(f"The configuration {path} has an api_key and belongs to another user.")


def _text(key: str, value: Any, path: Path) -> str:
    """A value of the file as the text of its variable."""
    types = _TYPES.get(key)
    if types is None:
        raise RequestError(f"The configuration {path} has the key {key!r}; the keys are {', '.join(sorted(_TYPES))}.")
    # In Python, bool is a subclass of int.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join(_NAMES[each] for each in types)
        shown = "of another type, and is not shown here" if key in _SECRET else repr(value)
        raise RequestError(f"{key} in {path} is {shown}: write {wanted}.")
    if isinstance(value, bool):
        return str(int(value))
    text = _joined(key, value, path) if isinstance(value, list) else str(value)
    # An empty variable counts as unset. An empty key in the file is refused: it would silently pin no keys.
    if key == "trusted_keys" and not any(each.strip() for each in text.split(",")):
        raise RequestError(f"{key} in {path} is {value!r}: name a key, or leave it out to have no pins.")
    return text


def _joined(key: str, listed: list[Any], path: Path) -> str:
    if not all(isinstance(each, str) and "," not in each for each in listed):
        raise RequestError(f"{key} in {path} is {listed!r}: write an array of strings.")
    return ",".join(listed)
