"""An exported program as a model, from a file or from torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from ...errors import InvalidGraphError
from ..bounds import Bounds
from .archive import read_archive
from .exported import Exported
from .model import TorchModel
from .ranges import limited
from .translate import translated

if TYPE_CHECKING:
    ExportedProgram: TypeAlias = Any
    Source: TypeAlias = ExportedProgram | str | os.PathLike[str] | BinaryIO


def load(program: Source, *, symbols: Mapping[str, Bounds] | None = None) -> TorchModel:
    """Import an exported program: a `.pt2` file, a stream of one, or torch's `ExportedProgram`.

    A file needs no torch; it holds what `torch.export.save(exported.run_decompositions(), path)` wrote. Of an
    `ExportedProgram` the decompositions are run here. `symbols` gives each dynamic dimension its inclusive bounds, or
    one size that fixes it, by torch's name of the symbol (`s77`) or as `<input>_<axis>` (`x_0`); those that torch has
    bounds of need none. Parameters, buffers and constants become bound parameters.

    UnsupportedGraphError lists every operation that is not supported, with the line of the user's Python, and every
    symbol without an upper bound. InvalidGraphError when a file is damaged or operands do not fit, RequestError for
    bounds that torch's program does not have, OSError when a file cannot be opened.
    """
    if not isinstance(program, str | os.PathLike) and not hasattr(program, "read"):
        from .from_export import from_export

        return _model(from_export(program), symbols or {})
    given = read_archive(program)
    try:
        return _model(given, symbols or {})
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        AssertionError,
        ArithmeticError,
        RecursionError,
    ) as error:
        # What an archive states that no torch would, and no part of the import looks at by itself.
        raise InvalidGraphError(f"the exported program does not fit together: {error!r}") from error


def _model(given: Exported, symbols: Mapping[str, Bounds]) -> TorchModel:
    exported, bounds = limited(given, symbols)
    return translated(exported, bounds)
