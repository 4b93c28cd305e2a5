"""Every error that tensorkiln raises on purpose.

    TensorkilnError
    ├── InvalidGraphError         graph.invalid                422
    ├── UnsupportedGraphError     graph.unsupported            422
    ├── LimitExceededError        limit.exceeded               413
    ├── CompileError
    │   ├── DiagnosticError           compile.diagnostic           422
    │   ├── CrashedError              compile.crashed              422
    │   ├── DeadlineExceededError     compile.deadline_exceeded    422
    │   └── ResourceExhaustedError    compile.resource_exhausted   422
    ├── InfrastructureError
    │   ├── UnavailableError          infra.unavailable            503
    │   └── LostWorkerError           infra.lost_worker            503
    ├── RequestError              request.invalid              400
    ├── NotFoundError             request.not_found            404
    ├── AuthError
    │   ├── MissingCredentialError    auth.missing                 401
    │   ├── InvalidCredentialError    auth.invalid                 401
    │   ├── ExpiredCredentialError    auth.expired                 401
    │   └── ForbiddenError            auth.forbidden               403
    ├── RateLimitedError          rate.limited                 429
    ├── DeviceError               device.unavailable           424
    ├── UntrustedArtifactError    artifact.untrusted           502
    ├── JobCancelledError         job.cancelled                409
    └── CallError
        ├── CallBoundsError           call.bounds                  422
        ├── CallInputError            call.input                   422
        └── CallTurnsError            call.turns                   422

`code` is stable and part of the contract; the text of a message is not. On the wire an error is an RFC 9457 problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

PROBLEM_TYPE_PREFIX = "urn:tensorkiln:error:"

T = TypeVar("T")


class TensorkilnError(Exception):
    """An error with a stable code, an HTTP status, and JSON Pointers to the nodes it is about."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    title: ClassVar[str] = "Internal error"

    def __init__(self, message: str, *, pointers: Sequence[str] = (), details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.pointers = tuple(pointers)
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        # A pointer may contain unprintable field names from the request.
        where = f" (at {', '.join(map(_printable, self.pointers))})" if self.pointers else ""
        return f"{self.message}{where}"

    def _repr_html_(self) -> str:
        from .show.program import error_html

        return error_html(self)

    def to_problem(self) -> dict[str, Any]:
        """The RFC 9457 problem document of this error."""
        return {
            "type": PROBLEM_TYPE_PREFIX + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.message,
            "code": self.code,
            "retryable": self.retryable,
            "pointers": list(self.pointers),
            "details": self.details,
        }


def _printable(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode() for each in text
    )


class InvalidGraphError(TensorkilnError):
    """The graph is not a well-formed program: structure, topology, a shape or a dtype is wrong."""

    code, status, title = "graph.invalid", 422, "The graph is invalid"


class UnsupportedGraphError(TensorkilnError):
    """The graph is well-formed but asks for something that this version cannot compile correctly."""

    code, status, title = "graph.unsupported", 422, "The graph is not supported"


class LimitExceededError(TensorkilnError):
    """A published limit is exceeded; `details` holds `limit`, `maximum` and `actual`."""

    code, status, title = "limit.exceeded", 413, "A limit is exceeded"

    def __init__(
        self,
        message: str,
        *,
        pointers: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
        limit: str = "",
        maximum: int = 0,
        actual: int = 0,
    ) -> None:
        stated = {"limit": limit, "maximum": maximum, "actual": actual} if limit else {}
        super().__init__(message, pointers=pointers, details={**stated, **(details or {})})


class CompileError(TensorkilnError):
    """The compiler did not produce a program; the service keeps running."""

    status, title = 422, "The graph was not compiled"


class DiagnosticError(CompileError):
    """A pass refused the module; `details` names the stage."""

    code = "compile.diagnostic"


class CrashedError(CompileError):
    """The compile process died; `details` names stage, signal and reproducer."""

    code = "compile.crashed"


class DeadlineExceededError(CompileError):
    """The compile exceeded its wall-clock deadline and was killed."""

    code = "compile.deadline_exceeded"


class ResourceExhaustedError(CompileError):
    """The compile exceeded its memory, file or output limit and was killed."""

    code = "compile.resource_exhausted"


class InfrastructureError(TensorkilnError):
    """The service could not process the request; the same request may succeed later."""

    status, retryable, title = 503, True, "The service is not available"


class UnavailableError(InfrastructureError):
    """The service is starting, draining or unreachable."""

    code = "infra.unavailable"


class LostWorkerError(InfrastructureError):
    """The process that ran the request was lost."""

    code = "infra.lost_worker"


class RequestError(TensorkilnError):
    """The HTTP request itself is malformed."""

    code, status, title = "request.invalid", 400, "The request is invalid"


class NotFoundError(TensorkilnError):
    """There is no such program, stage, artifact or route."""

    code, status, title = "request.not_found", 404, "Not found"


class AuthError(TensorkilnError):
    """The credential is missing or invalid, or lacks a scope."""

    status, title = 401, "The request is not authenticated"


class MissingCredentialError(AuthError):
    """The request has no API key and no token, and this service requires one."""

    code = "auth.missing"


class InvalidCredentialError(AuthError):
    """The API key or token is malformed, unknown, revoked, or signed by another issuer."""

    code = "auth.invalid"


class ExpiredCredentialError(AuthError):
    """The API key or token has expired."""

    code = "auth.expired"


class ForbiddenError(AuthError):
    """The credential lacks a scope; `details` lists the `scopes` that permit the request."""

    code, status, title = "auth.forbidden", 403, "The caller may not do this"


class RateLimitedError(TensorkilnError):
    """A limit of the caller's tenant is reached; `details` holds `limit`, `maximum`, `actual`, `retry_after_s`."""

    code, status, retryable, title = "rate.limited", 429, True, "A limit of the tenant is reached"

    @property
    def retry_after_s(self) -> int:
        """Whole seconds to wait before a retry, 1 or more."""
        stated = self.details.get("retry_after_s", 1)
        return max(1, int(stated)) if isinstance(stated, int | float) and math.isfinite(stated) else 1


class DeviceError(TensorkilnError):
    """The program cannot run on this machine: an ISA feature, driver or loader is missing."""

    code, status, title = "device.unavailable", 424, "The device is not available"


class UntrustedArtifactError(TensorkilnError):
    """The signature of a compiled program is missing or invalid; `details.reason` has the reason."""

    code, status, title = "artifact.untrusted", 502, "The program is not trusted"


class JobCancelledError(TensorkilnError):
    """The awaited job was cancelled; `details.job` is its id."""

    code, status, title = "job.cancelled", 409, "The job was cancelled"


class CallError(TensorkilnError):
    """A program was called with arguments that do not match it."""

    status, title = 422, "The call does not fit the program"


class CallBoundsError(CallError):
    """A symbol is missing, unknown or out of its bounds."""

    code = "call.bounds"


class CallInputError(CallError):
    """The count, dtype or shape of the inputs is wrong."""

    code = "call.input"


class CallTurnsError(CallError):
    """A loop would take more turns than its `most`, which `details` holds; there are no results."""

    code, title = "call.turns", "A loop takes too many turns"

    @classmethod
    def beyond(cls, most: int, pointers: Sequence[str] = ()) -> CallTurnsError:
        """The error for a loop that would continue after `most` turns."""
        message = f"a loop goes on after {most} turns, the most that it may take; give other inputs, or a greater most"
        return cls(message, pointers=pointers, details={"most": most})


def _tree(error: type[TensorkilnError]) -> Iterator[type[TensorkilnError]]:
    yield error
    for child in error.__subclasses__():
        yield from _tree(child)


def error_from_problem(problem: Mapping[str, Any]) -> TensorkilnError:
    """The error that a problem document describes.

    A code that this version does not know gives the class of its family, a CompileError for `compile.*`, or a plain
    `TensorkilnError`; `details.code` says which it was. Members of the wrong type are ignored (RFC 9457, section 3.1).
    """
    classes = {error.code: error for error in _tree(TensorkilnError) if "code" in vars(error)}
    code = str(problem.get("code"))
    error = classes.get(code, _FAMILIES.get(code.partition(".")[0], TensorkilnError))
    unknown = {} if code in classes else {"code": code}
    return error(
        _member(problem, "detail", "") or _member(problem, "title", "") or "unknown error",
        pointers=[str(pointer) for pointer in _member(problem, "pointers", list[Any]())],
        details={**_member(problem, "details", dict[str, Any]()), **unknown},
    )


def _member(problem: Mapping[str, Any], name: str, absent: T) -> T:
    value = problem.get(name)
    return value if isinstance(value, type(absent)) else absent


_FAMILIES: dict[str, type[TensorkilnError]] = {
    "auth": AuthError,
    "call": CallError,
    "compile": CompileError,
    "infra": InfrastructureError,
}
