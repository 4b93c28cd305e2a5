"""The request bodies of `POST /compile` and `POST /validate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NoReturn

from .errors import InvalidGraphError, LimitExceededError, RequestError
from .graph import Graph
from .limits import MAX_BODY_BYTES
from .nearest import kind_of
from .not_json import is_path, path_for_graph
from .options import CompileOptions
from .stablehlo import StableHlo
from .target import Target

WrittenGraph = Graph | str | bytes | Mapping[str, object]
"""A graph, or its JSON as text or as an object. JSON is checked by the service, not here."""

GraphSource = WrittenGraph | StableHlo
"""A client's input: a graph, or a StableHLO module, which the service translates first."""


def graph_json(graph: WrittenGraph) -> bytes:
    """The JSON of a graph.

    InvalidGraphError when it is not JSON, LimitExceededError when it is too long, RequestError for an object of another
    type.
    """
    text = _json(graph)
    if len(text) > MAX_BODY_BYTES:
        raise LimitExceededError(
            f"The graph is {len(text)} bytes of JSON, the limit is {MAX_BODY_BYTES}; pass large tables as inputs.",
            limit="body_bytes",
            maximum=MAX_BODY_BYTES,
            actual=len(text),
        )
    return text


def compile_body(graph: WrittenGraph, targets: Sequence[Target], options: CompileOptions) -> bytes:
    """The body for one graph and its targets. Equal requests give equal bytes, which the service looks up."""
    wire = [target.model_dump(mode="json") for target in targets]
    named = json.dumps(wire[0] if len(wire) == 1 else wire, separators=(",", ":"))
    return b'{"graph":%b,"target":%b,"options":%b}' % (
        graph_json(graph),
        named.encode(),
        options.model_dump_json().encode(),
    )


def validate_body(graph: WrittenGraph) -> bytes:
    """The body with a graph alone."""
    return b'{"graph":%b}' % graph_json(graph)


def _json(graph: WrittenGraph) -> bytes:
    if isinstance(graph, Graph):
        return graph.to_json().encode()
    try:
        if isinstance(graph, Mapping):
            return json.dumps(graph, allow_nan=False, separators=(",", ":")).encode()
        text = graph.encode() if isinstance(graph, str) else _bytes(graph)
        # The text is sent unchanged, so that the service sees repeated keys, too.
        json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if isinstance(graph, str) and is_path(graph):
            raise RequestError(path_for_graph(graph)) from None
        raise InvalidGraphError(
            f"The graph is not JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from None
    except UnicodeError as error:
        raise InvalidGraphError(f"The graph is not UTF-8 text: {error}.") from None
    except RecursionError:
        raise InvalidGraphError("The graph's JSON is nested too deeply.") from None
    except (TypeError, ValueError) as error:
        raise InvalidGraphError(f"The graph cannot be written as JSON: {error}.") from None
    return text


def _bytes(graph: object) -> bytes:
    if isinstance(graph, bytes | bytearray):
        return bytes(graph)
    if isinstance(graph, PurePath):
        raise RequestError(path_for_graph(str(graph)))
    raise RequestError(f"A graph cannot be {_hint(graph)}")


def _hint(graph: object) -> str:
    """The end of an error's message: the kind of the given object, and what to pass instead."""
    match type(graph).__name__:
        case "Builder":
            return "a Builder: give builder.graph()."
        case "Tensor" if hasattr(graph, "builder"):
            return "a Tensor: name it by builder.output(tensor), and give builder.graph()."
        case "Model" if hasattr(graph, "parameters") and hasattr(graph, "graph"):
            return "a Model, which has parameters too: call model.compile(target), or give model.graph."
        case _ if callable(graph):
            return f"{kind_of(graph)}: write one with tensorkiln.build, or import it by one of tensorkiln.frontends."
        case _:
            return f"{kind_of(graph)}: give a Graph, or its JSON as text, bytes or an object."


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not JSON; write it as the string "{name.lower().replace("infinity", "inf")}"')
