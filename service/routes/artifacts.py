"""GET and HEAD /artifacts/{sha256}"""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request, Response

from service.http.byte_range import UnsatisfiableRange, parse_range
from service.http.conditional import PreconditionFailedError, unchanged
from service.http.problems import documented, respond
from service.identity.caller import caller
from tensorkiln.errors import NotFoundError, RequestError, TensorkilnError, UnavailableError

from .engine_of import Digest, EngineOf, Known, Needed

_OCTETS: Final = "application/octet-stream"
_BINARY: Final = {_OCTETS: {"schema": {"type": "string", "format": "binary"}}}

router = APIRouter()

_RESPONSES: Final = {
    200: {"description": "The bytes.", "content": _BINARY},
    206: {"description": "The bytes of the range.", "content": _BINARY},
    304: {"description": "The client's copy is current."},
    **documented(
        NotFoundError,
        PreconditionFailedError,
        UnavailableError,
        TensorkilnError,
        statuses={
            416: "`request.invalid`: the artifact has no byte in the range.",
            422: "`request.invalid`: the path is malformed.",
        },
    ),
}


@router.get(
    "/artifacts/{digest}",
    operation_id="artifact",
    summary="Bytes by their SHA-256",
    response_class=Response,
    responses=_RESPONSES,
)
async def artifact(
    digest: Digest,
    request: Request,
    engine: EngineOf,
    wanted: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
    known: Known = None,
    needed: Needed = None,
    unless: Annotated[str | None, Header(alias="If-Range", description="Apply Range only to this ETag.")] = None,
) -> Response:
    """Object code, PTX, constants, dumps and reproducers. They never change, and are verified before they are sent."""
    content = await engine.blobs.get(digest) if await engine.tenancy.allows(digest) else None
    if content is None:
        raise NotFoundError(f"There is no artifact {digest}; compile the graph again.")
    etag = f'"{digest}"'
    headers = {
        "ETag": etag,
        "Cache-Control": f"{'public' if caller().is_local else 'private'}, max-age=31536000, immutable",
        "Accept-Ranges": "bytes",
        "Repr-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
    }
    current = unchanged(known, needed, headers)
    if current is not None:
        return current
    try:
        span = parse_range(wanted, len(content)) if unless is None or unless.strip() == etag else None
    except UnsatisfiableRange:
        problem = RequestError(f"The artifact has {len(content)} bytes, none of them in the range {wanted!r}.")
        return respond(problem, status=416, headers={"Content-Range": f"bytes */{len(content)}"})
    if span is None:
        return Response(content, headers=headers, media_type=_OCTETS)
    headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{len(content)}"
    return Response(content[span.start : span.stop], 206, headers, _OCTETS)


@router.head(
    "/artifacts/{digest}",
    operation_id="artifact_head",
    summary="Whether there are bytes with this SHA-256",
    response_class=Response,
    responses={
        200: {"description": "They are there; Content-Length says how many."},
        304: {"description": "The client's copy is current."},
        404: {"description": "There are none."},
        412: {"description": "They have none of the ETags of If-Match."},
        422: {"description": "The path is malformed."},
        500: {"description": "The service has a defect."},
        503: {"description": "The store does not answer."},
    },
)
async def artifact_head(
    digest: Digest,
    request: Request,
    engine: EngineOf,
    known: Known = None,
    needed: Needed = None,
) -> Response:
    """The headers of GET, without the bytes."""
    return await artifact(digest, request, engine, known=known, needed=needed)
