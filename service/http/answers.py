"""Answer bodies of the service that the contract has no record for, those about jobs included."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import distributions
from secrets import token_hex
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from service import wire
from service.sandbox.control import Ready
from service.sandbox.levels import Level
from service.settings import Settings
from service.store.job_records import JobRecord
from service.wire.answers import Answer, Phase, Problem
from service.wire.body import MAX_BATCH, MAX_TARGETS
from tensorkiln import compile_limits, limits
from tensorkiln.architectures import ARCHITECTURES
from tensorkiln.compiler_build import build
from tensorkiln.spec.abi import ABI_VERSION
from tensorkiln.target import LEVELS
from tensorkiln.trust import KeySet, SignedRecord

from .coded_bodies import CODINGS, MAX_FRAMES, MAX_RATIO, MAX_WINDOW_BYTES

SCHEMA_VERSIONS = (1,)
_ASSEMBLER: Final = "nvidia-nvjitlink"
"""The package with NVIDIA's assembler as a library: a compile may not start a program such as ptxas."""


class Prewritten:
    """Annotates JSON written in the sandbox, with the schema of the model `name` in `module`, below `service.wire`.

    The model is imported only for its schema, because the import takes a third of a service's start.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        model: type[BaseModel] = getattr(import_module(self._module, wire.__name__), self._name)
        return handler(model.__pydantic_core_schema__)


class CompileAnswer(Answer):
    """One program per target, in the order of the request, and beside them their signed records."""

    programs: tuple[Annotated[Any, Prewritten("tensorkiln.spec", "CompiledProgram")], ...]
    signatures: tuple[SignedRecord | None, ...] = ()


class Isolation(Answer):
    """How a compile is kept away from the service and from other compiles.

    `shortcomings` are what keeps the level from being a stronger one.
    """

    level: Level
    mechanisms: tuple[str, ...]
    shortcomings: tuple[str, ...]


class Capabilities(Answer):
    """What this service can do.

    `ptxas` is the version of the assembler that the option `cubin` needs; null where there is none. `content_codings`
    are those in which bodies may be sent.
    """

    build_id: str
    versions: dict[str, str]
    schema_versions: tuple[int, ...]
    abi: int
    targets: tuple[str, ...]
    ptxas: str | None
    node_kinds: tuple[str, ...]
    custom_operations: tuple[str, ...]
    dtypes: tuple[str, ...]
    limits: dict[str, int | float]
    isolation: Isolation
    content_codings: tuple[str, ...]
    digest_function: Literal["sha256"] = "sha256"
    keys: KeySet


class Health(Answer):
    """The state of the process."""

    status: Literal["ok"] = "ok"


class CallerAnswer(Answer):
    """Whom the service takes the caller for.

    `name` and `tenant` are those of its credential, and `scopes` are what that permits. At a service that asks for no
    credential, `is_local` is true for everybody, and everybody has all scopes.
    """

    name: str
    tenant: str
    scopes: tuple[str, ...]
    is_local: bool


class JobAnswer(CompileAnswer):
    """A compile that was accepted. `programs` are there when its `state` is `done`, `error` when it is `failed`.

    `attempt` counts how often its work was begun: it is more than 1 when a service, a worker or a compile was
    lost. `phases` are those of the service that has it now, or had it last, in the order in which they began.
    `queue_ms` is the time in which it waited for its turns, here and in a farm, `run_ms` all other time that it took,
    both null while they are not known.
    """

    id: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    accepted: datetime
    attempt: int
    phases: tuple[Phase, ...]
    queue_ms: float | None
    run_ms: float | None
    error: Problem | None


NOTHING: Final = CompileAnswer(programs=()).model_dump_json().encode()
"""The answer of a compile without programs."""


def ended_at_once(answer: bytes, run_ms: float) -> bytes:
    """The body of a job that ends with its request and is not stored."""
    record = JobRecord(token_hex(16), "", time.time(), {}, state="done", queue_ms=0.0, run_ms=round(run_ms, 3))
    return encode(record, answer)


def encode(record: JobRecord, answer: bytes = NOTHING) -> bytes:
    """Encode the answer about a job. `answer` is that of the compile, a JSON object; it is not parsed."""
    facts = JobAnswer(
        programs=(),
        id=record.id,
        state=record.state,
        accepted=datetime.fromtimestamp(record.accepted, UTC),
        attempt=record.attempt,
        phases=tuple(Phase.model_validate(event.data) for event in record.events if event.kind == "stage"),
        queue_ms=record.queue_ms,
        run_ms=record.run_ms,
        error=Problem.model_validate(record.error) if record.error is not None else None,
    )
    return facts.model_dump_json(exclude=set(CompileAnswer.model_fields)).encode()[:-1] + b"," + answer[1:]


def described(settings: Settings, ready: Ready) -> Capabilities:
    """The capabilities of a service with these settings and this fork server, without the keys."""
    # Imported here: a private service is rarely asked for its capabilities.
    from tensorkiln.custom import registered
    from tensorkiln.dtypes import DType
    from tensorkiln.nodes import NODE_KINDS

    return Capabilities(
        build_id=build().build_id,
        versions=build().versions,
        schema_versions=SCHEMA_VERSIONS,
        abi=ABI_VERSION,
        targets=("cpu", *(f"cpu:{level}" for level in LEVELS), *(f"cuda:{name}" for name in ARCHITECTURES)),
        # Found without loading it: this process compiles nothing.
        ptxas=next((found.version for found in distributions(name=_ASSEMBLER)), None),
        node_kinds=tuple(NODE_KINDS),
        custom_operations=tuple(registered()),
        dtypes=tuple(DType),
        limits={
            **{name[4:].lower(): most for name, most in vars(limits).items() if name.startswith("MAX_")},
            "operations": compile_limits.MAX_OPERATIONS,
            "code_bytes": compile_limits.MAX_CODE_BYTES,
            "body_ratio": MAX_RATIO,
            "body_window_bytes": MAX_WINDOW_BYTES,
            "body_frames": MAX_FRAMES,
            "targets": MAX_TARGETS,
            "batch": MAX_BATCH,
            "compile_deadline_s": settings.compile_deadline_s,
            "compile_memory_mib": settings.compile_memory_mib,
            "compile_output_mib": settings.compile_output_mib,
        },
        isolation=Isolation(level=Level(ready.level), mechanisms=ready.mechanisms, shortcomings=ready.shortcomings),
        content_codings=CODINGS,
        keys=KeySet(keys=()),
    )
