"""`kiln.toml` beside models: bounds of dimensions, targets, options and constants, for all of them or by glob.

Only the nearest file applies: that in the model's folder, or in a folder above it, up to the folder that a command is
given or runs in.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from ..errors import RequestError
from ..nodes.base import Record
from ..options import CompileOptions
from ..reasons import reason
from ..target import Target
from ..target_names import full_name

FILE: Final = "kiln.toml"
MAX_BYTES: Final = 1 << 20
_SHOWN: Final = 60


def _checked(bounds: int | tuple[int, int]) -> int | tuple[int, int]:
    low, high = (bounds, bounds) if isinstance(bounds, int) else bounds
    if not 0 <= low <= high:
        raise ValueError("write [MIN, MAX] with 0 <= MIN <= MAX, or a SIZE of 0 or more")
    return bounds


_Bounds = Annotated[StrictInt | tuple[StrictInt, StrictInt], AfterValidator(_checked)]
_Target = Annotated[StrictStr, AfterValidator(full_name)]
_Numbers = StrictBool | StrictInt | StrictFloat | list[Any]


class ModelSettings(Record):
    """What is said of models. `options` and `targets` that are not stated are None, or unset fields."""

    dims: dict[str, _Bounds] = Field(default_factory=dict[str, _Bounds])
    targets: tuple[_Target, ...] | None = None
    options: CompileOptions = CompileOptions()
    constants: dict[str, _Numbers] = Field(default_factory=dict[str, _Numbers])

    def under(self, other: ModelSettings) -> ModelSettings:
        """These, with what `other` states in their place: its targets as a whole, all else name by name."""
        stated = {each: getattr(other.options, each) for each in other.options.model_fields_set}
        return ModelSettings.model_construct(
            dims={**self.dims, **other.dims},
            targets=self.targets if other.targets is None else other.targets,
            options=_with(self.options, stated),
            constants={**self.constants, **other.constants},
        )

    def with_flags(
        self, dims: Mapping[str, int | tuple[int, int]], targets: Sequence[str] | None, options: Mapping[str, Any]
    ) -> ModelSettings:
        """These, with what the command line says in their place. An option that is None is not said."""
        said = _with(CompileOptions(), {name: value for name, value in options.items() if value is not None})
        flags = ModelSettings.model_construct(
            dims=dict(dims), targets=tuple(targets) if targets else None, options=said, constants={}
        )
        return self.under(flags)


class KilnToml(ModelSettings):
    """The whole file: what it says of all models, and of those whose path matches a glob, later ones over earlier."""

    models: dict[str, ModelSettings] = Field(default_factory=dict[str, ModelSettings])


def settings_of(model: Path, top: Path | None = None) -> ModelSettings:
    """The settings of a model by the nearest `kiln.toml`, searched from its folder up to `top`.

    `top` defaults to the working directory. RequestError when the file is invalid.
    """
    file = nearest(model, top)
    if file is None:
        return ModelSettings()
    found = read_kiln_toml(file)
    settings: ModelSettings = found
    for glob, own in found.models.items():
        if fnmatchcase(_inside(model, file), glob):
            settings = settings.under(own)
    return settings


def nearest(model: Path, top: Path | None = None) -> Path | None:
    """The `kiln.toml` that applies to a model; None when there is none."""
    folder, last = _absolute(model).parent, _absolute(top or Path.cwd())
    inside = [folder, *folder.parents] if folder.is_relative_to(last) else [folder]
    for each in inside:
        if (each / FILE).is_file():
            return each / FILE
        if each == last:
            break
    return None


def require_matches(models: Sequence[Path], top: Path) -> None:
    """RequestError for a glob in a file under `top` that matches none of the models; it may be misspelled."""
    for file in sorted({each for model in models if (each := nearest(model, top)) is not None}):
        below = [_inside(model, file) for model in models if _absolute(model).is_relative_to(file.parent)]
        for glob in read_kiln_toml(file).models:
            if not any(fnmatchcase(path, glob) for path in below):
                near = _near(glob, below)
                raise RequestError(f"{file}: no model matches [models.{glob!r}]{near or ''}.")


def read_kiln_toml(path: Path) -> KilnToml:
    """Read the settings in a file. RequestError, with the file, the key and a suggestion, when it is invalid."""
    try:
        status = path.stat()
        return _read(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror or error}.") from None


@lru_cache(64)
def _read(path: Path, changed_ns: int, size: int) -> KilnToml:
    if size > MAX_BYTES:
        raise RequestError(f"{path} has {size} bytes; at most {MAX_BYTES} are read.")
    try:
        stated = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"{path} is not TOML: {error}.") from None
    try:
        found = KilnToml.model_validate(stated)
    except ValidationError as error:
        raise RequestError(f"{path}: {_said(error)}.") from None
    return _with_targets(found, path)


def _with_targets(found: KilnToml, path: Path) -> KilnToml:
    """The settings with full names of targets. RequestError for an unknown target."""
    for each in (found, *found.models.values()):
        for name in each.targets or ():
            try:
                Target.parse(name)
            except RequestError as error:
                raise RequestError(f"{path}: {error.message}") from None
        if each.targets == ():
            raise RequestError(f"{path}: targets is empty: name one, or leave it out.")
    return found


def _said(error: ValidationError) -> str:
    """The message for the first error, in terms of the file."""
    first = error.errors()[0]
    keys = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        known = list(_known(keys[:-1]))
        near = _near(keys[-1], known) or f"; known are {', '.join(known)}"
        return f"{_key(keys)} is not a setting{near}"
    # After the name of a setting, the location has the union members that pydantic tried.
    depth = 2 if keys[0] != "models" else 4
    return f"{_key(keys[:depth])} is {str(first['input'])[:_SHOWN]!r}: {reason(first, subject='it')}"


def _known(table: Sequence[str]) -> Iterator[str]:
    """The keys that a table may have."""
    if table and table[-1] == "options":
        return iter(CompileOptions.model_fields)
    return iter((KilnToml if not table else ModelSettings).model_fields)


def _near(text: str, known: Sequence[str]) -> str:
    found = get_close_matches(text, known, n=1)
    return f"; do you mean {found[0]}?" if found else ""


def _key(keys: Sequence[str]) -> str:
    return ".".join(each if each.replace("_", "").isalnum() else repr(each[:_SHOWN]) for each in keys)


def _inside(model: Path, file: Path) -> str:
    return _absolute(model).relative_to(file.parent).as_posix()


def _absolute(path: Path) -> Path:
    # Not Path.absolute, which keeps `..`: a model outside a folder would count as one inside.
    return Path(os.path.abspath(path))


def _with(options: CompileOptions, stated: Mapping[str, Any]) -> CompileOptions:
    """The options updated with `stated`, and validated."""
    from ..sdk.asked import options_of

    return options_of({**{each: getattr(options, each) for each in options.model_fields_set}, **stated})
