"""Parse request bodies: their fields, targets, options and graph."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_core import from_json

from service.wire.body import MAX_TARGETS, in_terms_of_source
from tensorkiln.errors import InvalidGraphError, LimitExceededError, RequestError, TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.limits import MAX_JSON_DEPTH, MAX_NODES, MAX_SYMBOLS
from tensorkiln.nodes.problems import json_depth
from tensorkiln.options import CompileOptions, option_reason
from tensorkiln.strict_json import RepeatedKeyError, keys_in, most_keys, refuse_repeated_keys, with_signed_zeros
from tensorkiln.target import Target

NATIVE: Final = "cpu:native"
_BOUNDED: Final = {"nodes": ("nodes", MAX_NODES), "symbolic_vars": ("symbols", MAX_SYMBOLS)}
"""The limit of each list of a graph, by its name and its number."""
MOST_FIELDS: Final = 64
"""Most fields of an object in a request: objects of the contract have less than half as many, except vars_metadata."""

OF_COMPILE: Final = (("graph", "target"), ("options",))
"""The required fields of a compile request, first the source of its graph, and the optional ones."""
OF_VALIDATE: Final = (("graph",), ())
"""The same of a validation request."""
MODULE: Final = "stablehlo"
"""A field that may replace `graph`, with `DIMS` and `SHAPES` beside it."""
BUILDER: Final = "builder"
"""A field that may replace `graph`: lines of the builder as text."""
DIMS: Final = "dims"
SHAPES: Final = "shapes"
OF_TRANSLATE: Final = ((MODULE,), (DIMS, SHAPES))
"""The same of a translation request."""
_SOURCES: Final = {"graph": ("graph", MODULE, BUILDER), MODULE: (MODULE, BUILDER)}
"""The alternatives to a required field, itself included: a body has exactly one."""
_METADATA: Final = "/vars_metadata"
_DEPTH_EXCEEDED: Final = "recursion limit"
_FORMS: Final = ("artifact", "text")
"""The forms of a module."""


def parse_envelope(body: bytes, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a body; RequestError when one is missing or unknown."""
    return check_fields(parse_object(body), required, optional)


def check_fields(fields: Any, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """`fields` itself; RequestError when it is not an object, or one of its fields is missing or unknown."""
    if not isinstance(fields, dict):
        raise RequestError("The request is not a JSON object.")
    given = [name for name in _SOURCES.get(required[0], ()) if name in fields]
    if len(given) > 1:
        raise RequestError(f"The body has {' and '.join(given)}; it takes one of them.", pointers=[f"/{given[-1]}"])
    if given and given[0] != "graph":
        required = [given[0], *required[1:]]
        others = [name for name in optional if name not in (DIMS, SHAPES)]
        optional = [*others, *((DIMS, SHAPES) if given[0] == MODULE else ())]
    missing = [name for name in required if name not in fields]
    if missing:
        raise RequestError(f"The body lacks {', '.join(missing)}.", pointers=[f"/{name}" for name in missing])
    unknown = fields.keys() - set(required) - set(optional)
    if unknown:
        raise RequestError(f"The body has a field {min(unknown)[:64]!r}; it takes {', '.join((*required, *optional))}.")
    return fields


def parse_graph(value: Any) -> Graph:
    """The graph of a request. InvalidGraphError, UnsupportedGraphError or LimitExceededError as the contract says."""
    if isinstance(value, dict):
        for name, (limit, most) in _BOUNDED.items():
            _refuse_at_a_glance(name, value.get(name), limit, most)
        _refuse_wide_objects(value)
    return Graph.model_validate(value)


def _refuse_wide_objects(graph: dict[str, Any]) -> None:
    """Refuse objects with many fields: validation would report each unknown one. Only `vars_metadata` may have many."""
    entries = 0
    waiting: list[tuple[str, Any]] = [("", graph)]
    while waiting:
        pointer, value = waiting.pop()
        inside: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        if isinstance(value, dict) and pointer.endswith(_METADATA):
            entries += len(cast("dict[Any, Any]", value))
            if entries > MAX_NODES:
                raise InvalidGraphError(
                    f"vars_metadata has {entries} entries; a graph of {MAX_NODES} nodes, the limit, has no more",
                    pointers=[pointer],
                )
        elif isinstance(value, dict):
            refuse_many(value, pointer, InvalidGraphError)
        waiting += [(f"{pointer}/{name}", each) for name, each in inside if isinstance(each, dict | list)]


def refuse_many(fields: dict[str, Any], pointer: str, error: type[TensorkilnError]) -> None:
    """Raise `error` when an object has more than MOST_FIELDS fields."""
    if len(fields) > MOST_FIELDS:
        raise error(
            f"an object has {len(fields)} fields; none that a request may have has more than {MOST_FIELDS}",
            pointers=[pointer],
        )


def _refuse_at_a_glance(name: str, entries: Any, limit: str, most: int) -> None:
    """Refuse a list that is too long or has an entry that is no object: validation would report every entry."""
    if not isinstance(entries, list):
        return
    found: list[Any] = entries
    if len(found) > most:
        raise LimitExceededError(
            f"the {limit} limit is {most}, the graph has {len(found)}",
            pointers=[f"/{name}"],
            limit=limit,
            maximum=most,
            actual=len(found),
        )
    strange = next((place for place, entry in enumerate(found) if not isinstance(entry, dict)), None)
    if strange is not None:
        raise InvalidGraphError(f"{name} has an entry that is not an object", pointers=[f"/{name}/{strange}"])


def parse_targets(value: Any) -> tuple[Target, ...]:
    """The target or targets of a request, in its order."""
    several = isinstance(value, list)
    sources: list[Any] = value if several else [value]
    if not sources:
        raise RequestError("target is an empty list; name at least one.", pointers=["/target"])
    if len(sources) > MAX_TARGETS:
        raise LimitExceededError(
            f"The request names {len(sources)} targets; the limit is {MAX_TARGETS}.",
            pointers=["/target"],
            limit="targets",
            maximum=MAX_TARGETS,
            actual=len(sources),
        )
    return tuple(
        _parse_target(source, f"/target/{position}" if several else "/target")
        for position, source in enumerate(sources)
    )


def _parse_target(source: Any, pointer: str) -> Target:
    if not isinstance(source, str | dict):
        raise RequestError("A target is a shorthand such as cpu:x86-64-v3, or an object.", pointers=[pointer])
    if isinstance(source, dict):
        refuse_many(source, pointer, RequestError)
    if source == NATIVE:
        raise RequestError(
            "cpu:native means the machine that asks, which the service cannot see: "
            "use the SDK, which resolves it, or send triple, cpu and features.",
            pointers=[pointer],
        )
    try:
        return Target.parse(source)
    except TensorkilnError as error:
        raise type(error)(error.message, pointers=[pointer], details=error.details) from None


def parse_options(value: Any) -> CompileOptions:
    """Parse the options of a request without type coercion. RequestError when they are invalid."""
    if isinstance(value, dict):
        refuse_many(value, "/options", RequestError)
    try:
        return CompileOptions.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"/{step}" for step in ("options", *first["loc"]))
        raise RequestError(f"The options cannot be used: {option_reason(error)}", pointers=[where]) from None


def parse_object(text: bytes) -> dict[str, Any]:
    """The object in `text`. RequestError unless it is one without repeated keys; LimitExceededError if it is deep."""
    try:
        # Unlike Python's parser, this one has a limit of depth and takes no unpaired surrogates.
        content = from_json(with_signed_zeros(text), allow_inf_nan=False)
        most = most_keys(text)
        if keys_in(content, enough=most) < most:
            refuse_repeated_keys(text)
    except RepeatedKeyError as error:
        message = str(error)
        raise RequestError(f"{message[0].upper()}{message[1:]}.", pointers=[error.pointer]) from None
    except ValueError as error:
        if _DEPTH_EXCEEDED in str(error):
            depth = json_depth(text)
            raise LimitExceededError(
                f"The JSON is nested {depth} deep; the limit is {MAX_JSON_DEPTH}.",
                limit="json_depth",
                maximum=MAX_JSON_DEPTH,
                actual=depth,
            ) from None
        raise RequestError(
            f"The body is not JSON: {error}. Non-finite numbers are written as the strings inf, -inf and nan."
        ) from None
    if not isinstance(content, dict):
        raise RequestError("The body is not a JSON object.")
    return content


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
