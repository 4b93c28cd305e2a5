"""Encodings of signed data: canonical JSON and base64url."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any


def canonical_json(value: Any) -> bytes:
    """`value` as ASCII JSON with sorted keys and without spaces, so that equal values give equal bytes.

    ValueError for a number that is not finite.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def to_base64url(content: bytes) -> str:
    """Base64url without padding (RFC 7515 section 2)."""
    return urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """The inverse of `to_base64url`. ValueError when `text` is not what that function writes."""
    content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if to_base64url(content) != text:
        raise ValueError("not base64url without padding")
    return content
