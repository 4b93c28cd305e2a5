"""Parser for a request's shapes of the arguments of `@main`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorkiln.errors import LimitExceededError, RequestError
from tensorkiln.expr import Dim, ExprError, ExprLimitError, from_wire
from tensorkiln.limits import MAX_RANK


def parse_shapes(value: Any) -> Sequence[Sequence[Dim]] | None:
    """The shape of each argument, with dimensions in the wire format of graphs; None for null.

    RequestError for a value that is not a list of shapes, LimitExceededError for a shape or dimension over a limit.
    """
    if value is None:
        return None
    if not isinstance(value, list):
        raise RequestError("shapes is a list: the shape of each argument of @main.", pointers=["/shapes"])
    shapes: list[Any] = value
    return [_shape(shape, f"/shapes/{position}") for position, shape in enumerate(shapes)]


def _shape(value: Any, pointer: str) -> list[Dim]:
    if not isinstance(value, list):
        raise RequestError("A shape is a list of dimensions.", pointers=[pointer])
    dims: list[Any] = value
    if len(dims) > MAX_RANK:
        raise LimitExceededError(
            f"A shape has rank {len(dims)}; the limit is {MAX_RANK}.",
            pointers=[pointer],
            limit="rank",
            maximum=MAX_RANK,
            actual=len(dims),
        )
    try:
        return [from_wire(dim) for dim in dims]
    except ExprLimitError as error:
        raise LimitExceededError(
            str(error), pointers=[pointer], limit=error.limit, maximum=error.maximum, actual=error.actual
        ) from None
    except ExprError as error:
        raise RequestError(f"A dimension cannot be read: {error}.", pointers=[pointer]) from None
