"""What every test of the dialect has at hand: a context, and graphs from the bare minimum of JSON."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dialect.kiln import new_context
from dialect.mlir import ir


@pytest.fixture
def context() -> Iterator[ir.Context]:
    """A new context with the dialect, current during the test."""
    with new_context() as context, ir.Location.unknown():
        yield context
