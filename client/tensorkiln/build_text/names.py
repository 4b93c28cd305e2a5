"""The names that a text may call and read. Names outside these tables are never looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, Final

from .. import build
from ..build import Builder, Tensor, absolute

Called = Callable[..., Any]

_ARE_NO_FUNCTIONS: Final = frozenset({"Builder", "Tensor"})
_REASONS: Final = {
    "while_loop": "while_loop takes functions, which the text of a builder cannot define; send the graph in JSON",
    "pack_array": "pack_array takes an array of weights; make them an input",
}
_NUMBERS: Final = ("inf", "-inf", "nan")


def _float(value: str) -> float:
    if value not in _NUMBERS:
        raise TypeError(f"float only makes a number of {', '.join(map(repr, _NUMBERS))}")
    return float(value)


def _methods(owner: type, names: Iterable[str]) -> dict[str, Called]:
    return {name: vars(owner)[name] for name in names}


FUNCTIONS: Final[Mapping[str, Called]] = {
    **{name: getattr(build, name) for name in build.__all__ if name not in {*_ARE_NO_FUNCTIONS, *_REASONS}},
    "abs": absolute,
    "float": _float,
}
"""Functions by name: those of `tensorkiln.build`, `abs`, and `float` of infinities and NaN."""


def _graph(builder: Builder) -> None:
    """`graph()` in a text does nothing: the graph is taken at the end of the text."""


BUILDER_METHODS: Final[Mapping[str, Called]] = {
    **_methods(Builder, ("symbol", "input", "parameter", "constant", "output")),
    "graph": _graph,
}
TENSOR_METHODS: Final[Mapping[str, Called]] = _methods(
    Tensor, [name for name, each in vars(Tensor).items() if isinstance(each, FunctionType) and not name.startswith("_")]
)
TENSOR_FIELDS: Final = frozenset({"shape", "dtype", "rank", "ndim", "T"})

OF_BUILD: Final = frozenset(build.__all__)
"""Names that a text may import from `tensorkiln.build`; they are also available without an import."""


def why_not(name: str) -> str | None:
    """The reason that a name of `tensorkiln.build` cannot be called in a text; None for any other name."""
    return _REASONS.get(name)
