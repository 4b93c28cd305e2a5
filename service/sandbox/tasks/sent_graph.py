"""The graph of a request: sent as one, or translated from a module of StableHLO."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tensorkiln.errors import RequestError, TensorkilnError
from tensorkiln.graph import Graph

from .envelope import parse_graph, refuse_many

_FORMS: Final = ("artifact", "text")
_NODE: Final = re.compile(r"/nodes/([0-9]{1,9})(?!\w)")


@dataclass(frozen=True, slots=True)
class SentGraph:
    """A valid graph. `places` has what each of its nodes was translated from; nothing for a graph that was sent."""

    graph: Graph
    places: Sequence[str] = ()


def sent_graph(fields: dict[str, Any]) -> SentGraph:
    """The graph of the fields of a request. TensorkilnError for one that is not valid, or not translated."""
    if "graph" in fields:
        return SentGraph(parse_graph(fields["graph"]))
    source, dims = _source(fields["stablehlo"]), fields.get("dims", {})
    # It loads the bindings of MLIR, which no request for a graph needs.
    from stablehlo.bounds import parse_dims
    from stablehlo.shapes import parse_shapes
    from stablehlo.translate import translate

    translated = translate(source, parse_dims(dims), parse_shapes(fields.get("shapes")))
    try:
        return SentGraph(Graph.model_validate(translated.document), translated.places)
    except TensorkilnError as error:
        raise _in_terms_of(translated.places, error) from None


def _source(value: Any) -> str | bytes:
    """The text or the bytes of a module. RequestError when there is not exactly one of them."""
    pointer = "/stablehlo"
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


def _in_terms_of(places: Sequence[str], error: TensorkilnError) -> TensorkilnError:
    """The same error, about operations of the module instead of nodes."""

    def said(match: re.Match[str]) -> str:
        node = int(match[1])
        return places[node] if node < len(places) and places[node] else "the module"

    named = [said(match) for pointer in error.pointers if (match := _NODE.match(pointer)) is not None]
    message = _NODE.sub(said, error.message)
    shown = f"{named[0]}: {message}" if named else message
    return type(error)(shown, pointers=["/stablehlo"], details=error.details)
