"""Examples in the OpenAPI document: bodies that can be sent as they are, and what a service answered to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

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
_MODULE: Final[dict[str, Any]] = {
    "text": "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { "
    "%0 = stablehlo.add %x, %x : tensor<?xf32> return %0 : tensor<?xf32> }"
}
_BUILDER: Final = """b = Builder("layer")
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
            "value": {"stablehlo": _MODULE, "dims": _DIMS, "target": ["cpu:x86-64-v3", "cuda:sm_90"]},
        },
        "builder": {
            "summary": "Lines of the builder",
            "value": {"builder": _BUILDER, "target": "cpu:x86-64-v3"},
        },
    },
    "BatchBody": {
        "two": {"summary": "Two jobs", "value": {"requests": [_COMPILE, {**_COMPILE, "target": "cuda:sm_90"}]}}
    },
    "ValidateBody": {"graph": {"summary": "A graph", "value": {"graph": _GRAPH}}},
    "TranslateBody": {
        "module": {"summary": "A module", "value": {"stablehlo": _MODULE, "dims": _DIMS}},
        "builder": {"summary": "Lines of the builder", "value": {"builder": _BUILDER}},
    },
}
"""Examples of a body, by the component that describes it."""

ANSWERS_FILE: Final = Path(__file__).with_name("openapi_answers.json")
"""Written by `python -m tests.service.openapi_answers`."""


def answers() -> dict[str, Any]:
    """What a service answered, by method, path and status, such as `GET /keys 200`."""
    return json.loads(ANSWERS_FILE.read_text(encoding="utf-8"))
