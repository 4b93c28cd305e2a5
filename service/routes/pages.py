"""GET / and /explore, and their files: static pages for browsers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse

from service.identity.authenticator import EXPLORE, PAGES, START
from tensorkiln.report.page import content_security_policy

from .engine_of import Known, unchanged

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""In addition to the policy of every answer: no inline and no foreign scripts or styles."""


def explore_policy() -> str:
    """The policy of the page that shows reports in a frame, which inherits it in addition to its own.

    A report has one script and one style, allowed by their hashes: nothing else may be inline in the page or the frame.
    """
    report = dict(_directives(content_security_policy()))
    own = dict(_directives(POLICY))
    for name in ("script-src", "style-src"):
        own[name] += f" {report[name]}"
    return "; ".join(f"{name} {value}" for name, value in own.items())


def _directives(policy: str) -> Iterator[tuple[str, str]]:
    for directive in policy.split(";"):
        name, _, value = directive.strip().partition(" ")
        yield name, value


_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
SUMMARY: Final = "Tensor graphs in, compiled program specs out."
LINKS: Final = {
    "explore": EXPLORE,
    "docs": "/docs",
    "openapi": "/openapi.json",
    "capabilities": "/capabilities",
    "readiness": "/readyz",
    "whoami": "/whoami",
    "compile": "/compile",
}

router = APIRouter()


@router.get(START, include_in_schema=False, response_model=None)
async def start(request: Request, accept: Annotated[str, Header()] = "*/*", known: Known = None) -> Response:
    """The start page for clients that accept HTML, otherwise links as JSON."""
    if "text/html" in accept.lower():
        answer = await _answer(START, known)
    else:
        answer = JSONResponse({"name": request.app.title, "summary": SUMMARY, "links": LINKS})
    answer.headers["Vary"] = "Accept"
    return answer


async def _file(request: Request, known: Known = None) -> Response:
    return await _answer(request.scope["path"], known)


for _path in sorted(PAGES.keys() - {START}):
    router.add_api_route(_path, _file, include_in_schema=False, response_model=None)


@cache
def _read(path: str) -> tuple[bytes, str]:
    """The file at one of the public paths, and its media type."""
    file = Path(__file__).parents[1] / "pages" / PAGES[path]
    return file.read_bytes(), f"{_TYPES[file.suffix]}; charset=utf-8"


async def _answer(path: str, known: str | None) -> Response:
    content, media_type = await asyncio.to_thread(_read, path)
    headers = {
        "ETag": f'"{sha256(content).hexdigest()}"',
        "Cache-Control": "no-cache",
        "Content-Security-Policy": explore_policy() if path == EXPLORE else POLICY,
        "Referrer-Policy": "no-referrer",
    }
    return unchanged(known, headers) or Response(content, headers=headers, media_type=media_type)
