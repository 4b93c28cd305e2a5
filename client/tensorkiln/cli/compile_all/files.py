"""Discovery of the graphs in a folder, and atomic writing of files."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...errors import RequestError, TensorkilnError
from ...request import WrittenGraph
from ...whole_file import whole_file
from ..kiln_toml import ModelSettings
from ..model import SUFFIXES, Connect, Given, read_model
from ..printable import as_unicode
from .escape import escaped

_NOT_UTF_8: Final = "has a name that is not UTF-8, as the lock file and the reports are; rename it."


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A file with a graph. `name` is its path in the folder without the suffix, with slashes.

    `fault` is a problem of the name that prevents the compile; empty for none.
    """

    name: str
    path: Path
    fault: str | None = None

    def read(self, settings: ModelSettings, connect: Connect) -> WrittenGraph:
        """Read the graph, with the bounds of dimensions that it has.

        RequestError when the file cannot be read or has a fault, the graph's error when it is invalid.
        """
        if self.fault is not None:
            raise RequestError(self.fault)
        try:
            return read_model(self.path, Given.of(settings, {}), connect).graph
        except OSError as error:
            raise RequestError(f"{self.path} cannot be read: {error}.") from None


def find_graphs(folder: Path, out: Path, files: Sequence[Path]) -> tuple[GraphFile, ...]:
    """The graph files in `folder` and below, by name, without hidden files and the outputs of a run.

    The outputs are `files`, and everything in `out` if that is inside `folder`. A graph whose programs would overwrite
    one of `files` has a fault, and so has one whose name is not UTF-8. RequestError when there are no graphs, or two
    have the same name.
    """
    left_out = {path.resolve() for path in files}
    written_to = out.resolve() if folder.resolve() in out.resolve().parents else None
    found: dict[str, GraphFile] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix.lower() not in SUFFIXES or any(part[0] == "." for part in inside.parts):
            continue
        # A dangling link counts as a graph, so that it is reported.
        if not (path.is_file() or (path.is_symlink() and not path.exists())):
            continue
        place = path.parent.resolve() / path.name
        if place in left_out or (written_to is not None and written_to in place.parents):
            continue
        given = inside.with_suffix("").as_posix()
        name = as_unicode(given)
        if name in found:
            both = escaped(f"{path} and {found[name].path}")
            raise RequestError(f"{both} would have the same name; rename one.")
        fault = _in_the_way(path, name, out, files) if name == given else f"{escaped(str(path))} {_NOT_UTF_8}"
        found[name] = GraphFile(name, path, fault)
    if not found:
        raise RequestError(f"{folder} has no graphs: no file ends with {', '.join(SUFFIXES)}.")
    return tuple(found.values())


def _in_the_way(path: Path, name: str, out: Path, files: Iterable[Path]) -> str | None:
    folder = out.absolute() / name
    inside = [file for file in files if out.absolute() in file.absolute().parents]
    taken = next((file for file in inside if folder.is_relative_to(file.absolute())), None)
    if taken is None:
        return None
    return f"{path} would have its programs in the place of {taken}; rename it, or write that elsewhere."


def write_whole(path: Path, text: str) -> None:
    """Write a file, creating its folder if needed. RequestError when that fails."""
    with written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(text.encode())


@contextmanager
def written(path: Path) -> Generator[None]:
    """Convert a failure to write the file at `path`, or to create its folder, to a RequestError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise RequestError(f"{path} cannot be written: {reason}; make room, or write elsewhere.") from None


@contextmanager
def noted(errors: list[TensorkilnError]) -> Generator[None]:
    """Append an error of the block to `errors` instead of raising it."""
    try:
        yield
    except TensorkilnError as error:
        errors.append(error)
