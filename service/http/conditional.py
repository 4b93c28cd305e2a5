"""Requests for what the client may have already: If-None-Match, as RFC 9110 section 13 has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Header, Response

Known = Annotated[str | None, Header(alias="If-None-Match", description="ETags of the client's copies.")]
"""What a client has already."""


def unchanged(known: str | None, headers: Mapping[str, str]) -> Response | None:
    """The answer to a client that has the content of these headers already; None to any other, by weak comparison."""
    stated = [entry.strip().removeprefix("W/") for entry in (known or "").split(",")]
    return Response(status_code=304, headers=headers) if {"*", headers["ETag"]} & {*stated} else None
