"""Dependencies, parameters and parts of the OpenAPI document that the routes share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Header, Path, Request, Response

from service.engine.engine import Engine
from service.http.openapi import BODIES
from service.http.problems import LOOKUP_ERRORS, documented
from tensorkiln.errors import (
    CrashedError,
    DeadlineExceededError,
    InvalidGraphError,
    LimitExceededError,
    LostWorkerError,
    RequestError,
    ResourceExhaustedError,
    TensorkilnError,
    UnavailableError,
    UnsupportedGraphError,
)
from tensorkiln.limits import SHA256_PATTERN

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
Known = Annotated[str | None, Header(alias="If-None-Match", description="ETags of the client's copies.")]
"""The ETags of the client's copies, as sent."""


def engine_of(request: Request) -> Engine:
    """The engine of the application. As a dependency it would take FastAPI a twentieth of the time of a hit."""
    return request.app.state.engine


def unchanged(known: str | None, headers: Mapping[str, str]) -> Response | None:
    """A 304 response if the client's ETags match the one in `headers` (weak comparison), else None."""
    stated = [entry.strip().removeprefix("W/") for entry in (known or "").split(",")]
    return Response(status_code=304, headers=headers) if {"*", headers["ETag"]} & {*stated} else None


def refusals(*more: type[TensorkilnError]) -> dict[int | str, Any]:
    """The OpenAPI responses for the errors of every route that reads a graph, and for `more`."""
    return documented(
        RequestError,
        InvalidGraphError,
        UnsupportedGraphError,
        LimitExceededError,
        *more,
        CrashedError,
        DeadlineExceededError,
        ResourceExhaustedError,
        UnavailableError,
        LostWorkerError,
        TensorkilnError,
        statuses={
            408: "`request.invalid`: the body did not arrive in time.",
            415: "`request.invalid`: the body is not application/json, or in an unknown content coding.",
        },
    )


def takes(schema: str, *headers: Mapping[str, Any]) -> dict[str, Any]:
    """A required JSON body described by the component `schema`, and `headers`: the routes read these themselves."""
    shown = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": BODIES[schema]}
    body = {"required": True, "content": {"application/json": shown}}
    return {"requestBody": body, "parameters": [{"in": "header", "required": False, **each} for each in headers]}
