"""Errors of an operator, with the name of its node."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...errors import InvalidGraphError, LimitExceededError
from ...expr import ExprError, ExprLimitError
from .node import Node


@contextmanager
def named(node: Node) -> Generator[None]:
    """Convert exceptions of Python and NumPy for invalid operands to InvalidGraphError with the node's name.

    UnsupportedGraphError when memory or the algebra of dimensions is exhausted, LimitExceededError for a limit.
    """
    who = f"{node.op} {node.name}"
    try:
        yield
    except InvalidGraphError as error:
        raise InvalidGraphError(f"{who}: {error.message}", pointers=error.pointers) from error
    except ExprLimitError as error:
        raise LimitExceededError(
            f"{who}: {error}", limit=error.limit, maximum=error.maximum, actual=error.actual
        ) from error
    except (ExprError, MemoryError) as error:
        node.fail(f"this cannot be computed at the import: {error}")
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise InvalidGraphError(f"{who}: {error}") from error
