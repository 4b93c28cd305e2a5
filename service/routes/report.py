"""GET /programs/{digest}/report"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from service.engine.engine import Engine
from service.http.memory import held_by
from service.store.programs import Entry
from tensorkiln.errors import NotFoundError
from tensorkiln.limits import SHA256_PATTERN
from tensorkiln.report.page import CODE_STAGE, PTX, Parts, content_security_policy, page

from .engine_of import CONDITIONAL, Digest, EngineOf, Known, unchanged

MAX_TEXT_BYTES: Final = 32 << 20
"""Most bytes of the texts of one program; stages that do not fit are left out."""
COPIES: Final = 4
"""Copies of a text in memory while the page is made: stored, decoded, as JSON, and in the page."""

Against = Annotated[
    str | None, Query(pattern=SHA256_PATTERN, description="The digest of a program to compare this one with.")
]

router = APIRouter(tags=["Stored programs"])


@router.get(
    "/programs/{digest}/report",
    summary="A page about a program",
    response_class=HTMLResponse,
    responses=CONDITIONAL,
)
async def report(
    digest: Digest, request: Request, engine: EngineOf, against: Against = None, known: Known = None
) -> Response:
    """One HTML file that shows a program: kernels, schedule, memory, and the texts of its stages if these are kept.

    It is in canonical names, and the graph is that of the texts. docs/report.md has more.
    """
    entries = [await engine.program(each) for each in (digest, against) if each is not None]
    # All that is shown, and the page that shows it.
    shown = [[each.program, each.signature, sorted(each.stages.items()), dict(each.seconds)] for each in entries]
    headers = {
        "ETag": f'"{sha256(_json([content_security_policy(), shown])).hexdigest()}"',
        "Cache-Control": "no-cache",
        # In addition to the policy of every answer: names in a program never run as script, and the page does not share
        # the service's origin.
        "Content-Security-Policy": f"{content_security_policy()}; sandbox allow-scripts",
        "Referrer-Policy": "no-referrer",
    }
    current = unchanged(known, headers)
    if current is not None:
        return current
    sides = [await _stored(engine, each, request) for each in entries]
    made = await asyncio.to_thread(lambda: page(*(parts() for parts in sides)))
    return HTMLResponse(made, headers=headers)


async def _stored(engine: Engine, entry: Entry, request: Request) -> Callable[[], Parts]:
    """Load a program and its texts, of which the function makes what the page shows.

    UnavailableError or RateLimitedError while there is no room for the page.
    """
    program = await engine.blobs.get(entry.program)
    if program is None:
        raise NotFoundError(f"The stored program {entry.program} is missing or was damaged; compile the graph again.")
    texts: dict[str, bytes] = {}
    left_out: list[str] = []
    room = MAX_TEXT_BYTES
    for name, digest in {**entry.stages, **_ptx(entry)}.items():
        text = await engine.blobs.get(digest)
        if text is None or len(text) > room:
            left_out.append(name)
            continue
        request.app.state.memory_limit.require(COPIES * len(text))
        held_by(request.scope).add(COPIES * len(text), one_at_least=True)
        room -= len(text)
        texts[name] = text

    def parts() -> Parts:
        made = {"program": program, "signature": entry.signature.encode(), "seconds": _json(dict(entry.seconds))}
        made |= {f"stage:{name}": _json(text.decode("utf-8", "replace")) for name, text in texts.items()}
        return made | ({"about": _json({"texts left out": ", ".join(left_out)})} if left_out else {})

    return parts


def _ptx(entry: Entry) -> dict[str, str]:
    """The code of a program for CUDA, if it has no other artifact and no text of it among its stages."""
    request: dict[str, Any] = json.loads(entry.signature)["record"]["request"]
    is_text = request["target"].get("kind") == "cuda" and not request["options"].get("cubin")
    is_needed = is_text and CODE_STAGE not in entry.stages and len(entry.artifacts) == 1
    return {PTX: entry.artifacts[0]} if is_needed else {}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
