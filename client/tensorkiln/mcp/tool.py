"""The definition of a tool: name, argument schema, and the function that calls the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

Arguments: TypeAlias = Mapping[str, Any]
Result: TypeAlias = dict[str, Any]

MOST_NAMED: Final = 64
"""The most targets or dimensions in one call."""

PROPERTIES: Final[dict[str, dict[str, Any]]] = {
    "graph": {
        "type": "object",
        "description": "A tensor graph: schema, name, nodes, input_vars, output_vars, symbolic_vars. The tool `schema` "
        "has the schema of the graph and of each node.",
    },
    "stablehlo": {"type": "string", "description": "A StableHLO module as MLIR text, instead of a graph."},
    "dims": {
        "type": "object",
        "description": "Bounds of the module's dynamic dimensions, by name.",
        "additionalProperties": {
            "type": "object",
            "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
            "required": ["min", "max"],
            "additionalProperties": False,
        },
        "maxProperties": MOST_NAMED,
    },
    "targets": {
        "type": "array",
        "items": {"type": "string", "maxLength": 200},
        "minItems": 1,
        "maxItems": MOST_NAMED,
        "description": "Targets, such as cpu, cpu:x86-64-v3 or cuda:sm_90; the tool `capabilities` lists them.",
    },
    "options": {"type": "object", "description": "Compile options, such as fast_math, fusion or dump_stages."},
    "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The digest of a compiled program."},
    "against": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The digest of the other program."},
    "stage": {
        "type": "string",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        "description": "The name of a stage, as `compile` lists it.",
    },
    "name": {
        "type": "string",
        "maxLength": 200,
        "description": "The name of a node kind or schema, such as binop; without it, the schema of the graph.",
    },
    "symbols": {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "description": "The values of the graph's symbols.",
    },
    "inputs": {
        "type": "array",
        "description": "The inputs in order, as nested arrays of numbers; null for random values.",
    },
    "seed": {"type": "integer", "minimum": 0, "description": "The seed of random inputs; the default is 0."},
    "repeat": {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000,
        "description": "The number of timed runs; the default is 10.",
    },
}
"""The arguments that tools take, by name."""


class Requests(Protocol):
    """Requests to one service on behalf of one caller. An error answer raises its TensorkilnError."""

    @property
    def base_url(self) -> str | None:
        """The URL at which the caller reaches the service; None for a service on a Unix socket."""
        ...

    async def get(self, path: str) -> bytes:
        """Send a GET and return the body of the answer."""
        ...

    async def post(self, path: str, body: bytes) -> bytes:
        """Send a POST with a JSON body and return the body of the answer."""
        ...


@dataclass(frozen=True, slots=True)
class Tool:
    """`call` returns a JSON object. `takes` are its arguments, by name in `PROPERTIES`; `needs` those required."""

    name: str
    description: str
    takes: tuple[str, ...]
    needs: tuple[str, ...]
    call: Callable[[Requests, Arguments], Awaitable[Result]]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {name: PROPERTIES[name] for name in self.takes},
            "required": list(self.needs),
            "additionalProperties": False,
        }
