"""The graph: what a client sends to be compiled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, PrivateAttr, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from . import strict_json
from .dtypes import DType
from .errors import InvalidGraphError, LimitExceededError
from .infer import Constraint, Inference, infer
from .infer.loops import RegionGraph
from .limits import MAX_BODY_BYTES, MAX_NODES, MAX_SYMBOLS, NAME_PATTERN
from .nodes import Node, Region, SymVar, UnaryKind
from .nodes.base import Record, record_of
from .nodes.fields import DIMENSION_JSON_SCHEMA, DIMENSION_PLACEHOLDER, Vars
from .nodes.metadata import VarKey, VarMetadata
from .nodes.problems import translate, translate_json
from .types import TensorType

__all__ = ["Constraint", "Graph", "VarMetadata", "json_schema"]


class _SchemaVersion:
    """A literal that must be an integer: `true` and `1.0` equal 1 in Python, but are not versions."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.chain_schema([core_schema.int_schema(strict=True), handler(source)])

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(cast("core_schema.ChainSchema", schema)["steps"][-1])


class Graph(Record):
    """A graph that is known to be well-formed: its types are inferred and agree with `vars_metadata`.

    Nodes stand in topological order. `parameter_vars` are the inputs that a caller binds once, such as weights: what
    follows from them alone is prepared when they are bound. `model_validate_json` and `model_validate` raise
    InvalidGraphError, UnsupportedGraphError or LimitExceededError, with JSON Pointers into the graph.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    schema_version: Annotated[Literal[1], _SchemaVersion] = Field(alias="schema")
    name: Annotated[str, Field(strict=True, pattern=rf"^$|{NAME_PATTERN}")] = ""
    nodes: Annotated[tuple[Node, ...], Field(max_length=MAX_NODES)]
    vars_metadata: dict[Annotated[int, VarKey], VarMetadata] = Field(default_factory=dict)
    input_vars: Vars
    parameter_vars: Vars = Field(default=(), exclude_if=lambda declared: not declared)
    output_vars: Vars
    symbolic_vars: Annotated[tuple[SymVar, ...], Field(max_length=MAX_SYMBOLS)] = ()

    _inference: Inference = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        self._inference = infer(self)

    @classmethod
    def model_validate(
        cls,
        obj: Any,
        *,
        strict: bool | None = None,
        extra: Any = None,
        from_attributes: bool | None = None,
        context: Any = None,
        by_alias: bool | None = None,
        by_name: bool | None = None,
    ) -> Self:
        """The graph in a JSON-like object."""
        try:
            return super().model_validate(
                obj,
                strict=strict,
                extra=extra,
                from_attributes=from_attributes,
                context=context,
                by_alias=by_alias,
                by_name=by_name,
            )
        except ValidationError as error:
            raise translate(error, obj) from error

    @classmethod
    def model_validate_json(
        cls,
        json_data: str | bytes | bytearray,
        *,
        strict: bool | None = None,
        extra: Any = None,
        context: Any = None,
        by_alias: bool | None = None,
        by_name: bool | None = None,
    ) -> Self:
        """The graph in a JSON text. A repeated key is an error."""
        if len(json_data) > MAX_BODY_BYTES:
            raise LimitExceededError(
                f"the graph takes {len(json_data)} bytes; the limit is {MAX_BODY_BYTES}",
                limit="body_bytes",
                maximum=MAX_BODY_BYTES,
                actual=len(json_data),
            )
        text = json_data if isinstance(json_data, str) else bytes(json_data)
        try:
            graph = super().model_validate_json(
                strict_json.with_signed_zeros(text),
                strict=strict,
                extra=extra,
                context=context,
                by_alias=by_alias,
                by_name=by_name,
            )
            if strict_json.may_repeat_keys(text, _known_keys(graph)):
                strict_json.refuse_repeated_keys(text)
        except ValidationError as error:
            raise translate_json(error, text) from error
        except strict_json.RepeatedKeyError as error:
            raise InvalidGraphError(str(error), pointers=[error.pointer]) from None
        return graph

    def __repr__(self) -> str:
        from .show.graph import graph_line

        return graph_line(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from .show.graph import graph_html

        return graph_html(self)

    @staticmethod
    def of_region(region: Region, symbols: Mapping[str, tuple[int, int]], parameter_vars: Vars = ()) -> Graph:
        """The graph of a loop's region, with the symbols of the outer graph. Raises the same errors as validation.

        `parameter_vars` are inputs that no turn changes.
        """
        fields = {
            "schema_version": 1,
            "name": "",
            "nodes": region.nodes,
            "vars_metadata": region.vars_metadata,
            "input_vars": region.input_vars,
            "parameter_vars": parameter_vars,
            "output_vars": region.output_vars,
            "symbolic_vars": tuple(RegionGraph(region, symbols).symbolic_vars),
        }
        return record_of(Graph, fields, private={"_inference": infer(RegionGraph(region, symbols), 1)})

    @property
    def types(self) -> Mapping[int, TensorType]:
        """The type of every var."""
        return self._inference.types

    @property
    def inference(self) -> Inference:
        """The results of inference."""
        return self._inference

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The conditions that could not be proven for all values of the symbols, and are checked at every call."""
        return self._inference.constraints

    @property
    def symbols(self) -> Mapping[str, tuple[int, int]]:
        """The inclusive bounds of every symbol, a `bind` narrowing them to its value."""
        return self._inference.symbols

    def to_json(self) -> str:
        """The JSON text of the graph."""
        return self.model_dump_json(by_alias=True)


def _known_keys(graph: Graph) -> int:
    """A lower bound of the number of object keys in a graph's text: the fields that its records were built from."""
    records = (graph, *graph.nodes, *graph.vars_metadata.values(), *graph.symbolic_vars)
    return len(graph.vars_metadata) + sum(map(len, map(_FIELDS_SET, records)))


_FIELDS_SET = attrgetter("__pydantic_fields_set__")


@cache
def json_schema() -> dict[str, Any]:
    """The JSON Schema of the wire format; `x-extensions` lists the extensions of `graph_t`."""
    schema = _with_dimension_references(Graph.model_json_schema(by_alias=True))
    schema["$defs"]["Dimension"] = DIMENSION_JSON_SCHEMA
    schema["x-extensions"] = {
        "dtypes": [dtype for dtype in DType if dtype not in _SEED_DTYPES],
        "dimensions": "expressions",
        "graph": ["parameter_vars"],
        "nodes": ["while"],
        "scatter": ["init_var", "reduction"],
        "unary": [UnaryKind.TRUNC],
    }
    return schema


_SEED_DTYPES = {DType.FLOAT32, DType.INT32, DType.BOOL, DType.UINT8, DType.UNIT}


def _with_dimension_references(schema: Any) -> Any:
    if schema == DIMENSION_PLACEHOLDER:
        return {"$ref": "#/$defs/Dimension"}
    if isinstance(schema, dict):
        return {key: _with_dimension_references(value) for key, value in cast("dict[str, Any]", schema).items()}
    if isinstance(schema, list):
        return [_with_dimension_references(item) for item in cast("list[Any]", schema)]
    return schema
