"""The Accept-Encoding header (RFC 9110 section 12.5.3), as far as the service answers to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

ZSTD: Final = "zstd"
_ENTRY: Final = re.compile(r"\s*([\w!#$%&'*+.^`|~-]+)\s*(?:;\s*[qQ]\s*=\s*([01](?:\.\d{0,3})?)\s*)?")
_MAX_BYTES: Final = 1024


def takes_zstd(headers: Sequence[str]) -> bool:
    """Whether a client with these Accept-Encoding headers takes zstd, and likes nothing at all no better.

    What is not understood is ignored: the answer is then sent as it is.
    """
    stated: dict[str, float] = {}
    for entry in ",".join(headers)[:_MAX_BYTES].split(","):
        match = _ENTRY.fullmatch(entry)
        if match is not None:
            stated.setdefault(match[1].lower(), float(match[2] or 1))
    weight = stated.get(ZSTD, stated.get("*", 0.0))
    return weight > 0 and weight >= stated.get("identity", 0.0)
