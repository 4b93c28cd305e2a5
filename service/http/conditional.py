"""Conditional requests, as RFC 9110 section 13 has them."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Response

from tensorkiln.errors import RequestError


class PreconditionFailedError(RequestError):
    """No ETag of If-Match is that of what is there."""

    status = 412


def unchanged(known: str | None, needed: str | None, headers: Mapping[str, str]) -> Response | None:
    """The answer to who has what these headers are of already: `known` is If-None-Match, `needed` If-Match.

    The error of `require_match`.
    """
    require_match(needed, headers["ETag"])
    return Response(status_code=304, headers=headers) if matches(known, headers["ETag"]) else None


def require_match(header: str | None, etag: str) -> None:
    """PreconditionFailedError unless If-Match names `etag`, of what is there: by strong comparison, as the RFC asks."""
    if header is None:
        return
    stated = [entry.strip() for entry in header.split(",")]
    if "*" not in stated and (etag.startswith("W/") or etag not in stated):
        raise PreconditionFailedError(
            f"If-Match is {header}, and the current ETag is {etag}; send that ETag, or leave out If-Match.",
            details={"etag": etag},
        )


def matches(header: str | None, etag: str) -> bool:
    """Whether If-None-Match names `etag`: by weak comparison, which is what the RFC asks for there."""
    if header is None:
        return False
    stated = [entry.strip().removeprefix("W/") for entry in header.split(",")]
    return "*" in stated or etag.removeprefix("W/") in stated
