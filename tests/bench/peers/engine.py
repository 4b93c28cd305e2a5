"""What a peer's file gives: how it writes, compiles and calls a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tests.bench.peers.workloads import Array

Function: TypeAlias = Callable[..., Any]
"""Takes the inputs that are not constants, in order, in the peer's own arrays."""

Compile: TypeAlias = Callable[[Mapping[int, Any]], Function]
"""Takes the constants by their places among the inputs."""


class CannotExpress(Exception):
    """The peer has no way to say or to run this row; the text is the reason that the table gives."""


@dataclass(frozen=True, slots=True)
class Task:
    """A row by its name, its inputs, and their names and the file where it is an ONNX model."""

    row: str
    inputs: Sequence[Array]
    names: Sequence[str] = ()
    model: Path | None = None


def _numpys(result: Any) -> Sequence[Any]:
    return result if isinstance(result, tuple | list) else (result,)


@dataclass(frozen=True, slots=True)
class Engine:
    """A peer in its process.

    `write` says the task in the peer's words, which no time is taken of, and gives what compiles that; what it compiles
    to may do the rest of the work at its first call. A call returns when its results are there. `place` makes an array
    the peer's own, `outputs` gives the results of a call as NumPy's.
    """

    version: str
    write: Callable[[Task], Compile]
    place: Callable[[Array], Any] = np.asarray
    outputs: Callable[[Any], Sequence[Any]] = _numpys


def row_of(rows: Mapping[str, Any], task: Task, reason: str) -> Any:
    """The entry of the table for a task; `CannotExpress` with the reason where there is none."""
    if task.row not in rows:
        raise CannotExpress(reason)
    return rows[task.row]
