"""The graphs of a folder, and files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...errors import RequestError, TensorkilnError
from ...request import GraphSource
from ...whole_file import whole_file
from ..model import read_model

_SUFFIXES: Final = (".json", ".onnx")


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A file with a graph. `name` is its path in the folder without the suffix, with slashes."""

    name: str
    path: Path

    def read(self) -> GraphSource:
        """Its graph. RequestError when it cannot be read, an error of the graph when it holds none."""
        try:
            return read_model(self.path).graph
        except OSError as error:
            raise RequestError(f"{self.path} cannot be read: {error}.") from None


def find_graphs(folder: Path, apart_from: Iterable[Path]) -> tuple[GraphFile, ...]:
    """The `.json` and `.onnx` files in `folder` and below, by name, without hidden ones and those in `apart_from`.

    RequestError when there are none, or two have the same name.
    """
    left_out = {path.absolute() for path in apart_from}
    found: dict[str, GraphFile] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix.lower() not in _SUFFIXES or not path.is_file() or any(part[0] == "." for part in inside.parts):
            continue
        if left_out & {path.absolute(), *path.absolute().parents}:
            continue
        name = inside.with_suffix("").as_posix()
        if name in found:
            raise RequestError(f"{path} and {found[name].path} would have the same name; rename one.")
        found[name] = GraphFile(name, path)
    if not found:
        raise RequestError(f"{folder} has no graphs: no .json and no .onnx files.")
    return tuple(found.values())


def write_whole(path: Path, text: str) -> None:
    """Write a file, and its folder where there is none. RequestError when that fails."""
    with written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(text.encode())


@contextmanager
def written(path: Path) -> Generator[None]:
    """Have a failure to write the file at `path`, or its folder, be a RequestError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise RequestError(f"{path} cannot be written: {reason}; make room, or write elsewhere.") from None


@contextmanager
def noted(errors: list[TensorkilnError]) -> Generator[None]:
    """Have an error be one more of `errors`, and end nothing but this block."""
    try:
        yield
    except TensorkilnError as error:
        errors.append(error)
