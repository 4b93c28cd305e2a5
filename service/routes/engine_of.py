"""Dependencies and parameters that the routes share."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Path, Request

from service.engine.engine import Engine
from service.http.problems import LOOKUP_ERRORS
from tensorkiln.limits import SHA256_PATTERN


# A coroutine, because FastAPI runs a plain function in a thread.
async def _engine(request: Request) -> Engine:
    return request.app.state.engine


EngineOf = Annotated[Engine, Depends(_engine)]
"""The engine of the application."""

Digest = Annotated[
    str,
    Path(
        pattern=SHA256_PATTERN,
        description="A SHA-256, in lower-case hexadecimal digits, such as `programs[].digest` of `POST /compile`.",
        examples=["0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"],
    ),
]
"""A digest in a path."""

CONDITIONAL: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The client's copy is current."},
    **LOOKUP_ERRORS,
}
"""The other OpenAPI responses of a conditional lookup."""
