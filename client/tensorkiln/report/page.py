"""The HTML page of a report: the built template, with the data of one or two programs in inert script elements.

It imports only the standard library, so that code that serves stored records can make pages of them.
"""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from json import loads
from typing import Final

from .lines import as_lines

PLAIN_BYTES: Final = 64 << 10
"""The most bytes of JSON that is embedded as text, readable for people and tools; larger JSON is compressed."""
_DATA: Final = b"<!--data-->"
_RULE: Final = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)"')
_ESCAPES: Final = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}
"""Escapes that keep JSON from ending a script element. Outside strings, JSON has none of these characters."""

PTX: Final = "ptx"
"""The name of the text of a program's code, when there is no text of the code stage."""
CODE_STAGE: Final = "codegen"
"""The stage whose text is the code."""

Parts = Mapping[str, bytes]
"""The JSON of each part of a program's data, by name: `program`, `graph`, `names`, `signature`, `profile`, `about`, and
`stage:<name>` for the text of a stage.
"""


def page(program: Parts, against: Parts | None = None) -> bytes:
    """The report of a program as self-contained HTML; with `against`, a comparison with another program."""
    template = _template()
    elements = [*_elements("this", program), *_elements("against", against or {})]
    return template.replace(_DATA, b"\n".join(elements), 1)


@cache
def content_security_policy() -> str:
    """The page's Content-Security-Policy: its own script and style may run, and nothing is fetched."""
    found = _RULE.search(_template())
    assert found is not None, "the page states its policy"
    return found[1].decode()


@cache
def _template() -> bytes:
    return files(__name__.rpartition(".")[0]).joinpath("page.html").read_bytes()


def _elements(side: str, parts: Parts) -> Iterator[bytes]:
    for name, json in parts.items():
        named = f'<script type="application/json" data-side="{side}" data-part="{escape(name)}"'.encode()
        if len(json) <= PLAIN_BYTES:
            yield b"%b>%b</script>" % (named, _inert(json))
        else:
            lines = as_lines(loads(json)) if name.startswith("stage:") else None
            encoding, content = (b"gzip", json) if lines is None else (b"lines+gzip", lines)
            # mtime=0: equal data must give equal pages, but `compress` writes the time by default.
            packed = b64encode(gzip.compress(content, 9, mtime=0))
            yield b'%b data-encoding="%b">%b</script>' % (named, encoding, packed)


def _inert(json: bytes) -> bytes:
    for character, escaped in _ESCAPES.items():
        json = json.replace(character, escaped)
    return json
