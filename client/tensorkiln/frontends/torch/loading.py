"""Loading of exported programs as models, from a file or from torch."""

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

    Reading a file, written by `torch.export.save(exported.run_decompositions(), path)`, does not need torch. An
    `ExportedProgram` is decomposed here, except for recurrent layers and `linspace`. `symbols` gives each dynamic
    dimension its inclusive bounds, or one fixed size, by torch's name of the symbol (`s77`) or as `<input>_<axis>`
    (`x_0`); optional for symbols with bounds in torch. Parameters, buffers and constants become bound parameters.

    UnsupportedGraphError lists every unsupported operation, with the line of the user's code, and every symbol without
    an upper bound. InvalidGraphError when a file is damaged or operands do not fit, RequestError for an unknown symbol
    or bounds outside torch's, OSError when a file cannot be opened.
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
        # Contents of an archive that torch would not write, and that no other part of the import checks.
        raise InvalidGraphError(f"the exported program does not fit together: {error!r}") from error


def _model(given: Exported, symbols: Mapping[str, Bounds]) -> TorchModel:
    exported, bounds = limited(given, symbols)
    return translated(exported, bounds)
