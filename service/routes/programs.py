"""GET /programs/{digest} and /programs/{digest}/stages/{name}"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from fastapi.responses import PlainTextResponse

from service.engine.engine import Engine
from service.http.answers import Prewritten
from service.http.problems import LOOKUP_ERRORS
from tensorkiln.errors import NotFoundError
from tensorkiln.trust import SignedRecord

from .engine_of import CONDITIONAL, Digest, EngineOf, Known, unchanged

StageName = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="The name of a stage, of those in `stages` of the program.",
        examples=["from-graph"],
    ),
]

router = APIRouter(tags=["Stored programs"])


@router.get(
    "/programs/{digest}",
    summary="A program that was compiled before",
    response_model=Annotated[Any, Prewritten("tensorkiln.spec", "CompiledProgram")],
    responses=CONDITIONAL,
)
async def program(digest: Digest, engine: EngineOf, known: Known = None) -> Response:
    """The program of an action digest, in canonical names: symbols s0, s1, … and vars counted from 0.

    The SHA-256 of the body is the `program` of its signed record.
    """
    entry = await engine.program(digest)
    link = {"Link": f'</programs/{digest}/signature>; rel="describedby"'}
    return await _answer(engine, entry.program, "program", known, "application/json", link)


@router.get(
    "/programs/{digest}/signature",
    summary="The signed record of a program",
    response_model=SignedRecord,
    responses=LOOKUP_ERRORS,
)
async def signature(digest: Digest, engine: EngineOf) -> Response:
    """What was compiled, by whom, and what came out, signed by one of the keys at `/keys`; docs/trust.md has more."""
    return Response((await engine.program(digest)).signature, media_type="application/json")


@router.get(
    "/programs/{digest}/stages/{name}",
    summary="The IR text of one stage",
    response_class=PlainTextResponse,
    responses=CONDITIONAL,
)
async def stage(digest: Digest, name: StageName, engine: EngineOf, known: Known = None) -> Response:
    """What a stage produced, if the program was compiled with the option `dump_stages`."""
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
