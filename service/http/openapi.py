"""The OpenAPI document: FastAPI's, with the bodies that the routes read themselves, and with examples."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.identity.authenticator import PUBLIC
from service.wire.answers import Problem
from tensorkiln.errors import (
    ExpiredCredentialError,
    ForbiddenError,
    InvalidCredentialError,
    MissingCredentialError,
    RateLimitedError,
)

from .problems import documented

_REQUESTS: Final[dict[str, Any]] = json.loads(
    Path(__file__).with_name("openapi_requests.json").read_text(encoding="utf-8")
)
"""The bodies of requests by their fields, with examples; the groups of routes, and how a credential is sent."""
BODIES: Final[dict[str, dict[str, Any]]] = _REQUESTS["examples"]
"""Examples of a body, by the component that describes it."""
ANSWERS_FILE: Final = Path(__file__).with_name("openapi_answers.json")
"""Written by `python -m tests.service.openapi_answers`."""
_COMPONENTS: Final = "#/components/schemas/"
# Also without a credential: a service on the loopback may require none.
_SECURITY: Final[list[dict[str, list[str]]]] = [{}, {"bearer": []}]
_RAISED: Final = re.compile(r"\s*(ValueError|`model_validate\w*`)[^.]*(\.(?=\s|$)|\.?$)")
"""The sentence of a description that names the exceptions of Python."""
_NONE: Final = re.compile(r"\bNone\b")
_REFUSALS: Final = documented(
    MissingCredentialError, InvalidCredentialError, ExpiredCredentialError, ForbiddenError, RateLimitedError
)


def answers() -> dict[str, Any]:
    """What a service answered, by method, path and status, such as `GET /keys 200`."""
    return json.loads(ANSWERS_FILE.read_text(encoding="utf-8"))


def document(app: FastAPI) -> dict[str, Any]:
    """The document of `app`, made once."""
    if app.openapi_schema is None:
        from tensorkiln.transport import sdk_version

        app.openapi_schema = get_openapi(
            title=app.title,
            version=sdk_version(),
            summary="Tensor graphs in, compiled program specs out.",
            description="Every error is an RFC 9457 problem with a stable `code`.",
            routes=app.routes,
            tags=_REQUESTS["tags"],
        )
        app.openapi_schema.setdefault("components", {}).setdefault("schemas", {}).update(_request_schemas())
        _describe_credentials(app.openapi_schema)
        for name, value in answers().items():
            method, path, status = name.split()
            shown = app.openapi_schema["paths"][path][method.lower()]["responses"][status]["content"]
            shown["application/json"]["example"] = value
        # Descriptions are about JSON only: the models are also Python's, which has None and exceptions.
        for schema in app.openapi_schema["components"]["schemas"].values():
            if said := schema.get("description"):
                schema["description"] = _NONE.sub("null", _RAISED.sub("", said)).strip()
    return app.openapi_schema


def _describe_credentials(document: dict[str, Any]) -> None:
    """Add the security scheme, and the error responses of authentication, to `document`."""
    document["components"]["securitySchemes"] = {"bearer": _REQUESTS["scheme"]}
    for path, operations in document["paths"].items():
        if path in PUBLIC:
            continue
        for method, operation in operations.items():
            operation["security"] = _SECURITY
            for status, response in _REFUSALS.items():
                # An answer to HEAD has no body.
                documented_as = {"description": response["description"]} if method == "head" else response
                operation["responses"].setdefault(str(status), documented_as)


def _request_schemas() -> dict[str, Any]:
    # Nothing else in this process needs the models of graphs.
    from tensorkiln import graph
    from tensorkiln.options import CompileOptions
    from tensorkiln.target import Target

    graph_schema = graph.json_schema()
    # The wire format and the answers have records of the same name, a Buffer for one.
    definitions = {f"Graph.{name}": schema for name, schema in graph_schema["$defs"].items()}
    root = {name: value for name, value in graph_schema.items() if name != "$defs"}
    schemas = {name: _moved(schema, "Graph.") for name, schema in {**definitions, "Graph": root}.items()}
    fields = _REQUESTS["fields"]
    bodies: dict[str, dict[str, Any]] = {
        name: {**body, "properties": {field: fields[field] for field in body["properties"]}}
        for name, body in _REQUESTS["bodies"].items()
    }
    return {
        **schemas,
        "Target": _REQUESTS["schemas"]["Target"],
        "Problem": Problem.model_json_schema(mode="serialization"),
        "CompileOptions": CompileOptions.model_json_schema(),
        "TargetRecord": _moved(Target.model_json_schema(), "TargetRecord."),
        "RequestedTarget": _REQUESTS["schemas"]["RequestedTarget"],
        **bodies,
    }


def _moved(schema: Any, prefix: str) -> Any:
    """`schema` with its references to `$defs` pointing at the components whose names begin with `prefix`."""
    if isinstance(schema, dict):
        return {
            name: _COMPONENTS + prefix + value.rpartition("/")[2] if name == "$ref" else _moved(value, prefix)
            for name, value in schema.items()
        }
    return [_moved(entry, prefix) for entry in schema] if isinstance(schema, list) else schema
