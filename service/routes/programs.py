"""GET /programs/{digest} and /programs/{digest}/stages/{name}"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Response
from fastapi.responses import PlainTextResponse

from service.engine.engine import Engine
from service.problems import documented
from service.store.programs import Entry
from tensorkiln.errors import NotFoundError, TensorkilnError, UnavailableError
from tensorkiln.spec import CompiledProgram

from .engine_of import Digest, EngineOf

_ERRORS: Final = documented(
    NotFoundError, UnavailableError, TensorkilnError, statuses={422: "`request.invalid`: the path is malformed."}
)
StageName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", description="The name of a stage.")]

router = APIRouter()


@router.get(
    "/programs/{digest}",
    operation_id="program",
    summary="A program that was compiled before",
    response_model=CompiledProgram,
    responses=_ERRORS,
)
async def program(digest: Digest, engine: EngineOf) -> Response:
    """The program of an action digest, in canonical names: symbols s0, s1, … and vars counted from 0."""
    entry = await _entry(engine, digest)
    return Response(await _blob(engine, entry.program, "program"), media_type="application/json")


@router.get(
    "/programs/{digest}/stages/{name}",
    operation_id="stage",
    summary="The IR text of one stage",
    response_class=PlainTextResponse,
    responses=_ERRORS,
)
async def stage(digest: Digest, name: StageName, engine: EngineOf) -> Response:
    """What a stage produced, if the program was compiled with the option `dump_stages`."""
    entry = await _entry(engine, digest)
    if name not in entry.stages:
        kept = ", ".join(entry.stages) or "none, as it was compiled without dump_stages"
        raise NotFoundError(f"There is no dump of stage {name} of program {digest}; kept are: {kept}.")
    return PlainTextResponse(await _blob(engine, entry.stages[name], "dump"))


async def _entry(engine: Engine, digest: str) -> Entry:
    entry = await engine.programs.entry(digest)
    if entry is None:
        raise NotFoundError(f"There is no program {digest}.")
    return entry


async def _blob(engine: Engine, digest: str, what: str) -> bytes:
    content = await engine.blobs.get(digest)
    if content is None:
        raise NotFoundError(f"The stored {what} {digest} is missing or was damaged; compile the graph again.")
    return content
