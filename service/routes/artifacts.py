"""GET and HEAD /artifacts/{sha256}"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Annotated, Final

from fastapi import APIRouter, Header, Response

from service.http.problems import LOOKUP_ERRORS, documented, respond
from service.identity.caller import caller
from tensorkiln.errors import NotFoundError, RequestError

from .engine_of import Digest, EngineOf

_OCTETS: Final = "application/octet-stream"
_BINARY: Final = {_OCTETS: {"schema": {"type": "string", "format": "binary"}}}
_ONE_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))")

router = APIRouter(tags=["Stored programs"])


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
    engine: EngineOf,
    wanted: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
) -> Response:
    """Object code, PTX, constants, dumps and reproducers. They never change, and are verified before they are sent."""
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
async def artifact_head(digest: Digest, engine: EngineOf) -> Response:
    """The headers of GET, without the bytes."""
    return await artifact(digest, engine)


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
