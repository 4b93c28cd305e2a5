"""Conditional requests by If-None-Match (RFC 9110, section 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Header, Response

Known = Annotated[str | None, Header(alias="If-None-Match", description="ETags of the client's copies.")]
"""The ETags of the client's copies, as sent."""


def unchanged(known: str | None, headers: Mapping[str, str]) -> Response | None:
    """A 304 response if the client's ETags match the one in `headers` (weak comparison), else None."""
    stated = [entry.strip().removeprefix("W/") for entry in (known or "").split(",")]
    return Response(status_code=304, headers=headers) if {"*", headers["ETag"]} & {*stated} else None
