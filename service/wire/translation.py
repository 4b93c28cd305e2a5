"""The translation of a StableHLO module, or of lines of the builder, to a graph."""

from __future__ import annotations

from typing import Any

from .answers import Answer


class Translation(Answer):
    """`graph` is the JSON of a graph: the arguments of `@main` are its inputs, the results its outputs, in order.

    `places` says of each node of the graph where in the module's program the operation stood that it is for, or the
    line and column of the text; a node may have an empty one.
    """

    graph: dict[str, Any]
    places: tuple[str, ...]
