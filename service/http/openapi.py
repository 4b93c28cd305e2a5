"""The OpenAPI document: FastAPI's, with the bodies that the routes read themselves."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.wire.answers import Problem
from service.wire.limits import MAX_BATCH, MAX_BUILDER_CHARACTERS, MAX_TARGETS
from tensorkiln.limits import I64_MAX, MAX_SYMBOLS

from .credentials import describe_credentials
from .openapi_examples import GROUPS, group_of

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
"""A body has one of them."""


def document(app: FastAPI) -> dict[str, Any]:
    """The document of `app`, made once."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(
            title=app.title,
            version=app.version,
            summary="Tensor graphs in, compiled program specs out.",
            description="Every error is an RFC 9457 problem with a stable `code`.",
            routes=app.routes,
        )
        app.openapi_schema.setdefault("components", {}).setdefault("schemas", {}).update(_request_schemas())
        describe_credentials(app.openapi_schema)
        app.openapi_schema["tags"] = [{"name": name, "description": about} for name, (about, _) in GROUPS.items()]
        for path, operations in app.openapi_schema["paths"].items():
            for operation in operations.values():
                operation["tags"] = [group_of(path)]
    return app.openapi_schema


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
        "Problem": Problem.model_json_schema(mode="serialization"),
        "CompileOptions": CompileOptions.model_json_schema(),
        "TargetRecord": _moved(Target.model_json_schema(), "TargetRecord."),
        "RequestedTarget": {
            "anyOf": [
                {"type": "string", "examples": ["cpu", "cpu:x86-64-v3", "cpu:aarch64"]},
                {"$ref": f"{_COMPONENTS}TargetRecord"},
            ]
        },
        "CompileBody": {
            "type": "object",
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
            "properties": {
                "stablehlo": {
                    "description": "A StableHLO module: a portable artifact in base64, or text.",
                    "type": "object",
                    "properties": {"artifact": {"type": "string", "format": "byte"}, "text": {"type": "string"}},
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": False,
                },
                "dims": {
                    "description": "The inclusive bounds of dynamic dims: by the name of a symbol of `shapes`,  "
                    "and without these by `argument.dimension`.",
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
                        "required": ["min", "max"],
                        "additionalProperties": False,
                    },
                },
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
