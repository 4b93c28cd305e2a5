"""Answer bodies of the service that the contract has no record for."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Literal

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from service import wire
from service.sandbox.levels import Level
from service.wire.answers import Answer
from tensorkiln.trust import KeySet, SignedRecord


class Prewritten:
    """Annotates JSON written in the sandbox: not validated here; its schema is that of the model `name` in `module`.

    The model is imported only for its schema, because the import takes a third of a service's start. A `module` that
    begins with a dot is relative to `service.wire`.
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
