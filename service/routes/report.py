"""GET /programs/{digest}/report"""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse

from service.engine.engine import Engine
from service.http.conditional import matches, require_match
from service.store.programs import Entry
from tensorkiln.errors import NotFoundError
from tensorkiln.limits import SHA256_PATTERN
from tensorkiln.report.page import CODE_STAGE, PTX, Parts, content_security_policy, page

from .engine_of import CONDITIONAL, Digest, EngineOf, Known, Needed

MAX_TEXT_BYTES: Final = 64 << 20
"""Of the texts of one program; whole stages are left out beyond."""

Against = Annotated[
    str | None, Query(pattern=SHA256_PATTERN, description="The digest of a program to compare this one with.")
]

router = APIRouter()


@router.get(
    "/programs/{digest}/report",
    operation_id="report",
    summary="A page about a program",
    response_class=HTMLResponse,
    responses=CONDITIONAL,
)
async def report(
    digest: Digest, engine: EngineOf, against: Against = None, known: Known = None, needed: Needed = None
) -> Response:
    """One HTML file that shows a program: kernels, schedule, memory, and the texts of its stages if these are kept.

    It is in canonical names, and the graph is that of the texts. docs/report.md has more.
    """
    parts = await _parts(engine, digest)
    others = None if against is None else await _parts(engine, against)
    content, etag = await asyncio.to_thread(_made, parts, others)
    headers = {
        "ETag": etag,
        "Cache-Control": "no-cache",
        # Beside the policy of every answer: whatever the names in a program say, nothing of them runs, and the page is
        # no part of the service's origin.
        "Content-Security-Policy": f"{content_security_policy()}; sandbox allow-scripts",
        "Referrer-Policy": "no-referrer",
    }
    require_match(needed, etag)
    if matches(known, etag):
        return Response(status_code=304, headers=headers)
    return HTMLResponse(content, headers=headers)


async def _parts(engine: Engine, digest: str) -> Parts:
    entry = await engine.programs.entry(digest) if await engine.tenancy.allows(digest) else None
    if entry is None:
        raise NotFoundError(f"There is no program {digest}.")
    program = await engine.blobs.get(entry.program)
    if program is None:
        raise NotFoundError(f"The stored program {entry.program} is missing or was damaged; compile the graph again.")
    parts = {"program": program, "signature": entry.signature.encode(), "seconds": _json(dict(entry.seconds))}
    texts, left_out = await _texts(engine, entry)
    parts |= {f"stage:{name}": _json(text.decode("utf-8", "replace")) for name, text in texts.items()}
    if left_out:
        parts["about"] = _json({"texts left out": ", ".join(left_out)})
    return parts


async def _texts(engine: Engine, entry: Entry) -> tuple[dict[str, bytes], list[str]]:
    """The texts of an entry's stages, and of its code where that is text; the names of those that are too much."""
    wanted = {**entry.stages, **_ptx(entry)}
    texts: dict[str, bytes] = {}
    left_out: list[str] = []
    room = MAX_TEXT_BYTES
    for name, digest in wanted.items():
        text = await engine.blobs.get(digest)
        if text is None or len(text) > room:
            left_out.append(name)
            continue
        room -= len(text)
        texts[name] = text
    return texts, left_out


def _ptx(entry: Entry) -> dict[str, str]:
    """The code of a program for CUDA, if it has no other artifact and no text of it among its stages."""
    request: dict[str, Any] = json.loads(entry.signature)["record"]["request"]
    is_text = request["target"].get("kind") == "cuda" and not request["options"].get("cubin")
    is_needed = is_text and CODE_STAGE not in entry.stages and len(entry.artifacts) == 1
    return {PTX: entry.artifacts[0]} if is_needed else {}


def _made(parts: Parts, others: Parts | None) -> tuple[bytes, str]:
    content = page(parts, others)
    return content, f'"{sha256(content).hexdigest()}"'


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
