"""Conditional requests, as RFC 9110 section 13 has them."""

from __future__ import annotations


def matches(header: str | None, etag: str) -> bool:
    """Whether If-None-Match names `etag`: by weak comparison, which is what the RFC asks for there."""
    if header is None:
        return False
    stated = [entry.strip().removeprefix("W/") for entry in header.split(",")]
    return "*" in stated or etag.removeprefix("W/") in stated
