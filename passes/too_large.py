"""Expressions that only the compiler makes too large, as errors of the graph."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tensorkiln.errors import LimitExceededError, UnsupportedGraphError
from tensorkiln.expr import ExprError, ExprLimitError

_ADVICE = "use fewer symbols in the shapes of this graph, or cut it into smaller ones at values that you store"


@contextmanager
def expressions_bounded(stage: str) -> Generator[None]:
    """Give errors of symbolic integers their type: LimitExceededError at a limit, else UnsupportedGraphError.

    Inference bounds every dimension and every product of them. What passes add up may still be larger: the bytes that
    one kernel reads of many values, say.
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
