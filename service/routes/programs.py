"""What is stored, by its digest: programs, their signed records, stages and reports, and artifacts."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from service.engine.engine import Engine
from service.http.answers import Prewritten
from service.http.middlewares import held_by
from service.http.problems import LOOKUP_ERRORS, documented, respond
from service.identity.caller import caller
from service.store.programs import Entry
from tensorkiln.errors import NotFoundError, RequestError
from tensorkiln.limits import SHA256_PATTERN
from tensorkiln.report.page import CODE_STAGE, PTX, Parts, content_security_policy, page
from tensorkiln.trust import SignedRecord

from .engine_of import CONDITIONAL, Digest, Known, engine_of, unchanged

MAX_TEXT_BYTES: Final = 32 << 20
"""Most bytes of the texts in the report of one program; stages that do not fit are left out."""
COPIES: Final = 4
"""Copies of a text in memory while a report is made: stored, decoded, as JSON, and in the page."""
_OCTETS: Final = "application/octet-stream"
_BINARY: Final = {_OCTETS: {"schema": {"type": "string", "format": "binary"}}}
_ONE_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))")
StageName = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="The name of a stage, of those in `stages` of the program.",
        examples=["from-graph"],
    ),
]
Against = Annotated[
    str | None, Query(pattern=SHA256_PATTERN, description="The digest of a program to compare this one with.")
]

router = APIRouter(tags=["Stored programs"])


@router.get(
    "/programs/{digest}",
    summary="A program that was compiled before",
    response_model=Annotated[Any, Prewritten("tensorkiln.spec", "CompiledProgram")],
    responses=CONDITIONAL,
)
async def program(digest: Digest, request: Request, known: Known = None) -> Response:
    """The program of an action digest, in canonical names: symbols s0, s1, … and vars counted from 0.

    The SHA-256 of the body is the `program` of its signed record.
    """
    engine = engine_of(request)
    entry = await engine.program(digest)
    link = {"Link": f'</programs/{digest}/signature>; rel="describedby"'}
    return await _answer(engine, entry.program, "program", known, "application/json", link)


@router.get(
    "/programs/{digest}/signature",
    summary="The signed record of a program",
    response_model=SignedRecord,
    responses=LOOKUP_ERRORS,
)
async def signature(digest: Digest, request: Request) -> Response:
    """What was compiled, by whom, and what came out, signed by one of the keys at `/keys`; docs/trust.md has more."""
    return Response((await engine_of(request).program(digest)).signature, media_type="application/json")


@router.get(
    "/programs/{digest}/stages/{name}",
    summary="The IR text of one stage",
    response_class=PlainTextResponse,
    responses=CONDITIONAL,
)
async def stage(digest: Digest, name: StageName, request: Request, known: Known = None) -> Response:
    """What a stage produced, if the program was compiled with the option `dump_stages`."""
    engine = engine_of(request)
    entry = await engine.program(digest)
    if name not in entry.stages:
        kept = ", ".join(entry.stages) or "none, as it was compiled without dump_stages"
        raise NotFoundError(f"There is no dump of stage {name} of program {digest}; kept are: {kept}.")
    return await _answer(engine, entry.stages[name], "dump", known, "text/plain; charset=utf-8")


async def _answer(
    engine: Engine,
    digest: str,
    what: str,
    known: str | None,
    media_type: str,
    more: Mapping[str, str] | None = None,
) -> Response:
    content = await engine.blobs.get(digest)
    if content is None:
        raise NotFoundError(f"The stored {what} {digest} is missing or was damaged; compile the graph again.")
    # Revalidated each time: a new compile of the program may state another isolation level.
    headers = {"ETag": f'"{digest}"', "Cache-Control": "no-cache", **(more or {})}
    return unchanged(known, headers) or Response(content, headers=headers, media_type=media_type)


@router.get(
    "/artifacts/{digest}",
    summary="Bytes by their SHA-256",
    response_class=Response,
    responses={
        200: {"description": "The bytes.", "content": _BINARY},
        206: {"description": "The bytes of the range.", "content": _BINARY},
        **documented(statuses={416: "`request.invalid`: the artifact has no byte in the range."}),
        **LOOKUP_ERRORS,
    },
)
async def artifact(
    digest: Digest,
    request: Request,
    wanted: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
) -> Response:
    """Object code, PTX, constants, dumps and reproducers. They never change, and are verified before they are sent."""
    engine = engine_of(request)
    content = await engine.blobs.get(digest) if await engine.tenancy.allows(digest) else None
    if content is None:
        raise NotFoundError(f"There is no artifact {digest}; compile the graph again.")
    headers = {
        "ETag": f'"{digest}"',
        "Cache-Control": f"{'public' if caller().is_local else 'private'}, max-age=31536000, immutable",
        "Accept-Ranges": "bytes",
        "Repr-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
    }
    span = parse_range(wanted, len(content))
    if span is None:
        return Response(content, headers=headers, media_type=_OCTETS)
    if not span:
        problem = RequestError(f"The artifact has {len(content)} bytes, none of them in the range {wanted!r}.")
        return respond(problem, status=416, headers={"Content-Range": f"bytes */{len(content)}"})
    headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{len(content)}"
    return Response(content[span.start : span.stop], 206, headers, _OCTETS)


@router.head(
    "/artifacts/{digest}",
    summary="Whether there are bytes with this SHA-256",
    response_class=Response,
    responses={
        200: {"description": "They are there; Content-Length says how many."},
        404: {"description": "There are none."},
        422: {"description": "The path is malformed."},
        500: {"description": "The service has a defect."},
        503: {"description": "The store does not answer."},
    },
)
async def artifact_head(digest: Digest, request: Request) -> Response:
    """The headers of GET, without the bytes."""
    return await artifact(digest, request)


def parse_range(header: str | None, length: int) -> range | None:
    """Parse a Range header (RFC 9110, section 14) for `length` bytes; the range is empty when it has none of them.

    None means all bytes: a malformed header, or one with several ranges, is ignored.
    """
    match = _ONE_RANGE.fullmatch(header.strip()) if header else None
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        return range(max(length - int(suffix), 0), length)
    if last is not None and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, length) if last is not None else length)


@router.get(
    "/programs/{digest}/report",
    summary="A page about a program",
    response_class=HTMLResponse,
    responses=CONDITIONAL,
)
async def report(digest: Digest, request: Request, against: Against = None, known: Known = None) -> Response:
    """One HTML file that shows a program: kernels, schedule, memory, and the texts of its stages if these are kept.

    It is in canonical names, and the graph is that of the texts. docs/report.md has more.
    """
    engine = engine_of(request)
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
