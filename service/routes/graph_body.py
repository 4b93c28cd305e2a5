"""Parts of the OpenAPI document that the routes with a graph in the body share."""

from __future__ import annotations

from typing import Any

from service.http.openapi_examples import BODIES
from service.http.problems import documented
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


def takes(schema: str) -> dict[str, Any]:
    """A required JSON body described by the component `schema`: the routes read their bodies themselves."""
    shown = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": BODIES[schema]}
    content = {"application/json": shown}
    return {"requestBody": {"required": True, "content": content}}
