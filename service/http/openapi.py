"""The OpenAPI document: FastAPI's, with the bodies that the routes read themselves, and with examples."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.identity.policy import PUBLIC
from service.wire.answers import Problem
from service.wire.body import MAX_BATCH, MAX_BUILDER_CHARACTERS, MAX_TARGETS
from tensorkiln.errors import (
    ExpiredCredentialError,
    ForbiddenError,
    InvalidCredentialError,
    MissingCredentialError,
    RateLimitedError,
)
from tensorkiln.limits import I64_MAX, MAX_SYMBOLS

from .problems import documented

_GRAPH: Final[dict[str, Any]] = {
    "schema": 1,
    "name": "double",
    "nodes": [
        {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": ["n"]},
        {"node": "binop", "op": "add", "a_var": 0, "b_var": 0, "out_var": 1, "dtype": "float32"},
    ],
    "input_vars": [0],
    "output_vars": [1],
    "symbolic_vars": [{"name": "n", "min_val": 1, "max_val": 4096}],
}
_MODULE_SHOWN: Final[dict[str, Any]] = {
    "text": "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { "
    "%0 = stablehlo.add %x, %x : tensor<?xf32> return %0 : tensor<?xf32> }"
}
_BUILDER_SHOWN: Final = """b = Builder("layer")
n = b.symbol("n", 1, 4096)
x, w = b.input("float32", (n, 64)), b.input("float32", (64, 10))
b.output(relu(x @ w))
"""
_DIMS: Final = {"0.0": {"min": 1, "max": 4096}}
_COMPILE: Final = {"graph": _GRAPH, "target": "cpu:x86-64-v3", "options": {"dump_stages": True}}

BODIES: Final[dict[str, dict[str, Any]]] = {
    "CompileBody": {
        "graph": {"summary": "A graph for one target", "value": _COMPILE},
        "module": {
            "summary": "A StableHLO module for two targets",
            "value": {"stablehlo": _MODULE_SHOWN, "dims": _DIMS, "target": ["cpu:x86-64-v3", "cuda:sm_90"]},
        },
        "builder": {
            "summary": "Lines of the builder",
            "value": {"builder": _BUILDER_SHOWN, "target": "cpu:x86-64-v3"},
        },
    },
    "BatchBody": {
        "two": {"summary": "Two jobs", "value": {"requests": [_COMPILE, {**_COMPILE, "target": "cuda:sm_90"}]}}
    },
    "ValidateBody": {"graph": {"summary": "A graph", "value": {"graph": _GRAPH}}},
    "TranslateBody": {
        "module": {"summary": "A module", "value": {"stablehlo": _MODULE_SHOWN, "dims": _DIMS}},
        "builder": {"summary": "Lines of the builder", "value": {"builder": _BUILDER_SHOWN}},
    },
}
"""Examples of a body, by the component that describes it."""

ANSWERS_FILE: Final = Path(__file__).with_name("openapi_answers.json")
"""Written by `python -m tests.service.openapi_answers`."""
_COMPONENTS: Final = "#/components/schemas/"
_SIZE: Final = {"type": "integer", "minimum": 0, "maximum": I64_MAX}
_MODULE: Final[dict[str, Any]] = {
    "stablehlo": {
        "type": "object",
        "description": "A StableHLO module in the place of a graph: a portable artifact in base64, or MLIR text.",
        "properties": {"artifact": {"type": "string", "contentEncoding": "base64"}, "text": {"type": "string"}},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    },
    "dims": {
        "type": "object",
        "description": "The bounds of the module's dynamic dimensions, by symbol or by `argument.dimension`.",
        "additionalProperties": {
            "type": "object",
            "properties": {"min": _SIZE, "max": _SIZE},
            "required": ["min", "max"],
            "additionalProperties": False,
        },
        "maxProperties": MAX_SYMBOLS,
    },
}
_BUILDER: Final[dict[str, Any]] = {
    "type": "string",
    "description": "Lines of `tensorkiln.build` in the place of a graph. They are read, and never run as Python.",
    "maxLength": MAX_BUILDER_CHARACTERS,
}
_SOURCES: Final[list[dict[str, Any]]] = [
    {"required": ["graph"], "not": {"required": ["dims"]}},
    {"required": ["stablehlo"]},
    {"required": ["builder"], "not": {"required": ["dims"]}},
]
"""A body has exactly one of these fields."""
GROUPS: Final = {
    "Compiling": "Graphs in, programs out: synchronously, or as jobs.",
    "Graphs": "Check graphs, make them of modules and lines of the builder, or look for them; nothing is compiled.",
    "Stored programs": "By digest, with signatures and IR.",
    "The service": "Capabilities, health, metrics, keys, and the identity of the caller.",
}
"""The description of each group of routes."""
_SCHEME: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, or a token of an issuer that the service believes.",
}
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
            tags=[{"name": name, "description": about} for name, about in GROUPS.items()],
        )
        app.openapi_schema.setdefault("components", {}).setdefault("schemas", {}).update(_request_schemas())
        _describe_credentials(app.openapi_schema)
        _show_answers(app.openapi_schema)
        _for_readers_of_json(app.openapi_schema["components"]["schemas"])
    return app.openapi_schema


def _describe_credentials(document: dict[str, Any]) -> None:
    """Add the security scheme, and the error responses of authentication, to `document`."""
    document["components"]["securitySchemes"] = {"bearer": _SCHEME}
    for path, operations in document["paths"].items():
        if path in PUBLIC:
            continue
        for method, operation in operations.items():
            operation["security"] = _SECURITY
            for status, response in _REFUSALS.items():
                # An answer to HEAD has no body.
                documented_as = {"description": response["description"]} if method == "head" else response
                operation["responses"].setdefault(str(status), documented_as)


def _show_answers(document: dict[str, Any]) -> None:
    """Add an example to each answer in JSON that is no error."""
    for name, value in answers().items():
        method, path, status = name.split()
        document["paths"][path][method.lower()]["responses"][status]["content"]["application/json"]["example"] = value


def _for_readers_of_json(schemas: dict[str, Any]) -> None:
    """Say in every description what concerns JSON only: the models are also Python's, which has None and exceptions."""
    for schema in schemas.values():
        if said := schema.get("description"):
            schema["description"] = _NONE.sub("null", _RAISED.sub("", said)).strip()


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
    target = {"$ref": f"{_COMPONENTS}RequestedTarget"}
    return {
        **schemas,
        # What a model writes as it likes has no schema of its own.
        "Target": {"$ref": f"{_COMPONENTS}TargetRecord"},
        "Problem": Problem.model_json_schema(mode="serialization"),
        "CompileOptions": CompileOptions.model_json_schema(),
        "TargetRecord": _moved(Target.model_json_schema(), "TargetRecord."),
        "RequestedTarget": {
            "description": "A target by its name or as a record. `kiln targets` lists the names.",
            "anyOf": [
                {"type": "string", "examples": ["cpu", "cpu:x86-64-v3", "cpu:aarch64"]},
                {"$ref": f"{_COMPONENTS}TargetRecord"},
            ],
        },
        "CompileBody": {
            "type": "object",
            "description": "A graph, a StableHLO module or lines of the builder; targets, and options.",
            "properties": {
                "graph": {"$ref": f"{_COMPONENTS}Graph"},
                **_MODULE,
                "builder": _BUILDER,
                "target": {
                    "anyOf": [target, {"type": "array", "items": target, "minItems": 1, "maxItems": MAX_TARGETS}]
                },
                "options": {"$ref": f"{_COMPONENTS}CompileOptions"},
            },
            "required": ["target"],
            "oneOf": _SOURCES,
            "additionalProperties": False,
        },
        "BatchBody": {
            "type": "object",
            "description": "Several bodies of `POST /compile`.",
            "properties": {
                "requests": {
                    "type": "array",
                    "items": {"description": "A body of `POST /compile`. Each is accepted or refused on its own."},
                    "minItems": 1,
                    "maxItems": MAX_BATCH,
                },
            },
            "required": ["requests"],
            "additionalProperties": False,
        },
        "TranslateBody": {
            "type": "object",
            "description": "A StableHLO module or lines of the builder, of which a graph is made.",
            "properties": {
                **_MODULE,
                "shapes": {
                    "description": "The shape of each argument of @main, as shapes are in a graph.",
                    "type": "array",
                    "items": {"type": "array"},
                },
                "builder": _BUILDER,
            },
            "oneOf": [
                {"required": ["stablehlo"]},
                {"required": ["builder"], "not": {"anyOf": [{"required": ["dims"]}, {"required": ["shapes"]}]}},
            ],
            "additionalProperties": False,
        },
        "ValidateBody": {
            "type": "object",
            "description": "A graph, a StableHLO module or lines of the builder.",
            "properties": {"graph": {"$ref": f"{_COMPONENTS}Graph"}, **_MODULE, "builder": _BUILDER},
            "oneOf": _SOURCES,
            "additionalProperties": False,
        },
    }


def _moved(schema: Any, prefix: str) -> Any:
    """`schema` with its references to `$defs` pointing at the components whose names begin with `prefix`."""
    if isinstance(schema, dict):
        return {
            name: _COMPONENTS + prefix + value.rpartition("/")[2] if name == "$ref" else _moved(value, prefix)
            for name, value in schema.items()
        }
    return [_moved(entry, prefix) for entry in schema] if isinstance(schema, list) else schema
