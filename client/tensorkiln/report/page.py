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
MOST_BYTES: Final = 1 << 20
"""Bytes of a program's compressed data above which its texts are kept as lines: a page is to have less than 2 MB."""
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
    long = _compressed({name: json for name, json in parts.items() if len(json) > PLAIN_BYTES})
    for name, json in parts.items():
        named = f'<script type="application/json" data-side="{side}" data-part="{escape(name)}"'.encode()
        if name in long:
            encoding, packed = long[name]
            yield b'%b data-encoding="%b">%b</script>' % (named, encoding, b64encode(packed))
        else:
            yield b"%b>%b</script>" % (named, _inert(json))


def _compressed(parts: Parts) -> dict[str, tuple[bytes, bytes]]:
    """The encoding and the bytes of each part. If they have too many, the longest texts are kept as lines.

    That takes fifteen times as long as compression, and a half to a tenth of the bytes.
    """
    made = {name: (b"gzip", _zipped(json)) for name, json in parts.items()}
    excess = sum(len(packed) for _, packed in made.values()) - MOST_BYTES
    texts = [name for name in parts if name.startswith("stage:")]
    for name in sorted(texts, key=lambda name: -len(made[name][1])):
        if excess <= 0:
            break
        lines = as_lines(loads(parts[name]))
        packed = made[name][1] if lines is None else _zipped(lines)
        if lines is not None and len(packed) < len(made[name][1]):
            excess -= len(made[name][1]) - len(packed)
            made[name] = (b"lines+gzip", packed)
    return made


def _zipped(json: bytes) -> bytes:
    # mtime=0: equal data must give equal pages, but `compress` writes the time by default.
    return gzip.compress(json, 6, mtime=0)


def _inert(json: bytes) -> bytes:
    for character, escaped in _ESCAPES.items():
        json = json.replace(character, escaped)
    return json
