"""Messages for a file path given in place of the file's content."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

from .nearest import quoted

_PATH: Final = re.compile(r"[^\s{}\[\]\"<>|]{1,512}\.[A-Za-z][A-Za-z0-9]{1,11}")
_READERS: Final = {
    ".onnx": "tensorkiln.frontends.onnx.load(path).compile(target)",
    ".pt2": "tensorkiln.frontends.torch.load(path).compile(target)",
    ".jax": "tensorkiln.frontends.jax.load(path)",
    ".jaxexport": "tensorkiln.frontends.jax.load(path)",
    ".mlir": "StableHlo(Path(path).read_text())",
    ".mlirbc": "StableHlo(Path(path).read_bytes())",
    ".stablehlo": "StableHlo(Path(path).read_bytes())",
    ".kilnmodel": "tensorkiln.frontends.model.Model.load(path).compile(target)",
    ".kiln": "Program.from_bundle(path)",
}


def is_path(text: str) -> bool:
    """Whether a text looks like a file path, which no JSON does."""
    return _PATH.fullmatch(text.strip()) is not None


def path_for_graph(path: str) -> str:
    """The message for a path given in place of a graph."""
    reader = _READERS.get(PurePath(path.strip()).suffix.lower(), "Path(path).read_text()")
    return f"{quoted(path)} is the path of a file: give its content, by {reader}, or use the command kiln compile."
