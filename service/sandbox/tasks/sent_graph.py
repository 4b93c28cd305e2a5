"""The graph of a request: sent as one, translated from a module of StableHLO, or written by lines of the builder."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.wire.body import in_terms_of_source
from tensorkiln.errors import RequestError, TensorkilnError
from tensorkiln.graph import Graph

from .envelope import BUILDER, MODULE, parse_graph, refuse_many

_FORMS: Final = ("artifact", "text")


@dataclass(frozen=True, slots=True)
class SentGraph:
    """A valid graph, from this `field` of a request. `places` names the source of each node, if it was no graph."""

    graph: Graph
    places: Sequence[str] = ()
    field: str = "graph"


def sent_graph(fields: dict[str, Any]) -> SentGraph:
    """Build the graph from the fields of a request. TensorkilnError when it is invalid or cannot be translated."""
    if "graph" in fields:
        return SentGraph(parse_graph(fields["graph"]))
    return _written(fields[BUILDER]) if BUILDER in fields else _translated(fields)


def _written(text: Any) -> SentGraph:
    if not isinstance(text, str):
        raise RequestError("builder is a string: lines that write a graph.", pointers=[f"/{BUILDER}"])
    # Imported here: no other request needs the builder.
    from tensorkiln.build_text import read_builder_text

    try:
        written = read_builder_text(text)
    except TensorkilnError as error:
        raise type(error)(error.message, pointers=[f"/{BUILDER}"], details=error.details) from None
    return _checked(written.document, written.places, BUILDER)


def _translated(fields: dict[str, Any]) -> SentGraph:
    source, dims = _source(fields[MODULE]), fields.get("dims", {})
    # Imported here: only requests with a module need the bindings of MLIR.
    from stablehlo.bounds import parse_dims
    from stablehlo.shapes import parse_shapes
    from stablehlo.translate import translate

    translated = translate(source, parse_dims(dims), parse_shapes(fields.get("shapes")))
    return _checked(translated.document, translated.places, MODULE)


def _checked(document: Any, places: Sequence[str], field: str) -> SentGraph:
    try:
        return SentGraph(Graph.model_validate(document), places, field)
    except TensorkilnError as error:
        raise in_terms_of_source(error, places, field) from None


def _source(value: Any) -> str | bytes:
    """The text or the bytes of a module. RequestError when there is not exactly one of them."""
    pointer = f"/{MODULE}"
    if not isinstance(value, dict):
        raise RequestError("stablehlo is an object with an artifact or a text.", pointers=[pointer])
    refuse_many(value, pointer, RequestError)
    if len(value) != 1 or next(iter(value)) not in _FORMS:
        raise RequestError("stablehlo has one field: an artifact in base64, or a text.", pointers=[pointer])
    ((form, content),) = value.items()
    if not isinstance(content, str):
        raise RequestError(f"The {form} of stablehlo is a string.", pointers=[f"{pointer}/{form}"])
    if form == "text":
        return content
    try:
        return b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise RequestError("The artifact of stablehlo is not base64.", pointers=[f"{pointer}/artifact"]) from None
