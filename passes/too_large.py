"""Report expressions that grow too large in the compiler as errors of the graph."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tensorkiln.errors import LimitExceededError, UnsupportedGraphError
from tensorkiln.expr import ExprError, ExprLimitError

_ADVICE = "use fewer symbols in the shapes of this graph, or cut it into smaller ones at values that you store"


@contextmanager
def expressions_bounded(stage: str) -> Generator[None]:
    """Convert errors of symbolic integers: to LimitExceededError at a limit, else to UnsupportedGraphError.

    Inference bounds every dimension and product of dimensions. Sums made by passes may still be larger, such as the
    bytes that a kernel reads of many values.
    """
    try:
        yield
    except ExprLimitError as error:
        raise LimitExceededError(
            f"stage {stage} made an expression of sizes with {error.actual} for the limit of "
            f"{error.limit.replace('_', ' ')}, {error.maximum}: {_ADVICE}",
            details={"stage": stage},
            limit=error.limit,
            maximum=error.maximum,
            actual=error.actual,
        ) from error
    except ExprError as error:
        raise UnsupportedGraphError(
            f"stage {stage} made an expression of sizes that is beyond what can be reasoned about: {error}; {_ADVICE}",
            details={"stage": stage},
        ) from error
