"""The interface of a peer: how it writes, compiles and calls a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tests.bench.peers.workloads import Array

Function: TypeAlias = Callable[..., Any]
"""Called with the inputs that are not constants, in order, as the peer's own arrays."""

Compile: TypeAlias = Callable[[Mapping[int, Any]], Function]
"""Called with the constants by their positions among the inputs."""


class CannotExpress(Exception):
    """The peer cannot express or run this row; the text is the reason in the report."""


@dataclass(frozen=True, slots=True)
class Task:
    """A row with its inputs; for an ONNX model also the names of these and the file."""

    row: str
    inputs: Sequence[Array]
    names: Sequence[str] = ()
    model: Path | None = None


def _numpys(result: Any) -> Sequence[Any]:
    return result if isinstance(result, tuple | list) else (result,)


@dataclass(frozen=True, slots=True)
class Engine:
    """A peer in its process.

    `write` expresses the task in the peer's API, which is not timed, and returns a function that compiles it; some of
    the compilation may happen at the first call. A call returns when its results are complete. `place` converts an
    array to the peer's own, `outputs` the results of a call to NumPy's.
    """

    version: str
    write: Callable[[Task], Compile]
    place: Callable[[Array], Any] = np.asarray
    outputs: Callable[[Any], Sequence[Any]] = _numpys


def row_of(rows: Mapping[str, Any], task: Task, reason: str) -> Any:
    """The entry of `rows` for a task; `CannotExpress` with the reason if there is none."""
    if task.row not in rows:
        raise CannotExpress(reason)
    return rows[task.row]
