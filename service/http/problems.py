"""Every error as an RFC 9457 problem, those of FastAPI and Starlette included; and their documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from tensorkiln.errors import (
    AuthError,
    ForbiddenError,
    InfrastructureError,
    MissingCredentialError,
    NotFoundError,
    RateLimitedError,
    RequestError,
    TensorkilnError,
    UnavailableError,
)
from tensorkiln.reasons import reason

from .coded_bodies import CODINGS, CodingError

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 1
_REALM: Final = 'Bearer realm="tensorkiln"'

_log = structlog.get_logger()


def install(app: FastAPI) -> None:
    """Have `app` answer every error with a problem."""
    app.add_exception_handler(TensorkilnError, _on_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(Exception, _on_defect)


def respond(error: TensorkilnError, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """The response of an error; `status` replaces that of its class."""
    problem = {**error.to_problem(), "status": status or error.status}
    return Response(
        json.dumps(problem, separators=(",", ":")),
        problem["status"],
        {"Cache-Control": "no-store", **_headers(error), **(headers or {})},
        MEDIA_TYPE,
    )


def _headers(error: TensorkilnError) -> dict[str, str]:
    """Headers of an error: `Retry-After` in seconds, `WWW-Authenticate` (RFC 6750, section 3), `Accept-Encoding`."""
    match error:
        case RateLimitedError():
            return {"Retry-After": str(error.retry_after_s)}
        case InfrastructureError():
            return {"Retry-After": str(RETRY_AFTER_S)}
        case CodingError():
            return {"Accept-Encoding": ", ".join(CODINGS)}
        case MissingCredentialError():
            return {"WWW-Authenticate": _REALM}
        case ForbiddenError():
            scope = " ".join(error.details.get("scopes", ()))
            return {
                "WWW-Authenticate": f'{_REALM}, error="insufficient_scope"' + (f', scope="{scope}"' if scope else "")
            }
        case AuthError():
            return {"WWW-Authenticate": f'{_REALM}, error="invalid_token"'}
        case _:
            return {}


def documented(*errors: type[TensorkilnError], statuses: Mapping[int, str] | None = None) -> dict[int | str, Any]:
    """The OpenAPI responses of a route that answers with these errors; `statuses` adds descriptions by status."""
    meanings: dict[int, list[str]] = {}
    for error in errors:
        reason = (error.__doc__ or "").partition("\n")[0]
        meanings.setdefault(error.status, []).append(f"`{error.code}`: {reason}")
    for status, meaning in (statuses or {}).items():
        meanings.setdefault(status, []).append(meaning)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": "\n\n".join(texts), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status, texts in sorted(meanings.items())
    }


LOOKUP_ERRORS: Final = documented(
    NotFoundError, UnavailableError, TensorkilnError, statuses={422: "`request.invalid`: the path is malformed."}
)
"""The OpenAPI responses of a route that looks up what its path names."""


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TensorkilnError)
    return respond(error)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        problem: TensorkilnError = NotFoundError(f"There is no route {request.url.path}; /openapi.json lists them.")
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        problem = RequestError(f"{request.url.path} does not take {request.method}.")
        return respond(problem, status=error.status_code, headers={**(error.headers or {}), **_allow(request)})
    else:
        problem = RequestError(str(error.detail))
    return respond(problem, status=error.status_code, headers=error.headers)


def _allow(request: Request) -> dict[str, str]:
    """The Allow header with every method of the path: Starlette lists only those of the first matching route."""
    for template, operations in request.app.openapi()["paths"].items():
        if compile_path(template)[0].fullmatch(request.url.path):
            return {"Allow": ", ".join(sorted(method.upper() for method in operations))}
    return {}


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = "/".join(str(step) for step in first["loc"])
    problem = RequestError(f"{where}: {reason(first, subject='it')}.", pointers=[f"/{where}"])
    return respond(problem, status=HTTPStatus.UNPROCESSABLE_ENTITY)


async def _on_defect(request: Request, error: Exception) -> Response:
    _log.error("a request failed because of a defect of the service", method=request.method, exc_info=error)
    return respond(TensorkilnError("The service has a defect; its log tells where."))
