"""Argument shapes given by a request, in its own symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tensorkiln.build import Builder
from tensorkiln.errors import RequestError, UnsupportedGraphError
from tensorkiln.expr import Dim, free_symbols

from .symbols import SameSize


@dataclass(slots=True)
class StatedShapes:
    """The shape of each argument; `dims` has the inclusive bounds of each symbol."""

    dims: Mapping[str, tuple[int, int]]
    shapes: Sequence[Sequence[Dim]]
    used: set[str] = field(default_factory=set[str])
    unbounded: Sequence[str] = ()
    """Always empty: `dim` raises RequestError for a symbol without bounds."""

    def require_fit(self, arguments: Sequence[Sequence[int | None]]) -> None:
        """RequestError unless the module's arguments have these shapes; None matches any dimension."""
        if len(arguments) != len(self.shapes):
            raise RequestError(
                f"@main has {len(arguments)} arguments; shapes has {len(self.shapes)}.", pointers=["/shapes"]
            )
        for position, (own, stated) in enumerate(zip(arguments, self.shapes, strict=True)):
            fits = len(own) == len(stated) and all(
                dim is None or dim == other for dim, other in zip(own, stated, strict=True)
            )
            if not fits:
                shown = ", ".join("?" if dim is None else str(dim) for dim in own)
                raise RequestError(
                    f"Argument {position} of @main has the shape ({shown}), which differs from the one in shapes.",
                    pointers=[f"/shapes/{position}"],
                )

    def dim(self, builder: Builder, argument: int, axis: int) -> Dim:
        """The stated size of a dynamic dimension; declares its symbols. RequestError for a symbol without bounds."""
        stated = self.shapes[argument][axis]
        for name in () if isinstance(stated, int) else sorted(free_symbols(stated)):
            if name not in self.dims:
                raise RequestError(
                    f"The symbol {name!r} has no bounds in dims.", pointers=[f"/shapes/{argument}/{axis}"]
                )
            if name not in builder.symbols:
                builder.symbol(name, *self.dims[name])
            self.used.add(name)
        return stated

    def unify(self, found: SameSize) -> None:
        """UnsupportedGraphError: the module's assertions must hold for the stated shapes."""
        raise UnsupportedGraphError(
            f"The module asserts that {found.name} is {found.dim}, which the shapes do not say.", pointers=["/shapes"]
        )

    def require_bounds(self) -> None:
        """RequestError for bounds of a symbol that is in no shape."""
        unknown = sorted(self.dims.keys() - self.used)
        if unknown:
            raise RequestError(f"dims names no symbol of shapes: {unknown[0][:64]!r}.", pointers=["/dims"])
