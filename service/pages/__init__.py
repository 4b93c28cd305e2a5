"""Static pages for browsers. Their scripts call the service like any other client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

FOLDER: Final = "/pages"
START: Final = "/"
EXPLORE: Final = "/explore"
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_NAMED: Final = MappingProxyType({START: "start.html", EXPLORE: "explore.html"})
_PARTS: Final = ("pages.css", "api.js", "show.js", "start.js", "explore.js")


@dataclass(frozen=True, slots=True)
class Page:
    """A file with its media type and ETag."""

    content: bytes
    media_type: str
    etag: str


PATHS: Final = frozenset({*_NAMED, *(f"{FOLDER}/{name}" for name in _PARTS)})
"""Public paths: they hold no data, and a browser opens them before it has a key to send."""


@cache
def page(path: str) -> Page:
    """The file at one of PATHS."""
    file = Path(__file__).with_name(_NAMED.get(path) or path.removeprefix(f"{FOLDER}/"))
    content = file.read_bytes()
    return Page(content, f"{_TYPES[file.suffix]}; charset=utf-8", f'"{sha256(content).hexdigest()}"')
