"""What services and workers have in common that understand one another."""

from __future__ import annotations

from typing import Final

from tensorkiln.compiler_build import build

_PROTOCOL: Final = 5
"""Changes with what services and workers write for one another, of which those before understand nothing."""


def generation() -> str:
    """The compiler's build and the protocol: workers of another generation do not see its orders."""
    return f"{build().build_id[:16]}.{_PROTOCOL}"
