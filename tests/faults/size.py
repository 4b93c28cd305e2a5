"""At which size the fault tests run, and how they print their figures."""

from __future__ import annotations

import os
import sys
from typing import Any, Final, TypeVar

FULL: Final = os.environ.get("KILN_FAULTS") == "full"

T = TypeVar("T")


def sized(small: T, full: T) -> T:
    """`full` with KILN_FAULTS=full."""
    return full if FULL else small


def figures(what: str, **values: Any) -> None:
    """Print what was measured, past pytest's capture where that is the purpose of the run."""
    told = ", ".join(
        f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
    print(f"{what}: {told}", file=sys.__stderr__ if FULL else sys.stdout, flush=True)
