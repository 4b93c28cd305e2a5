"""The body of a request, less its graph: which fields it has, its targets and its options."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, Final, cast

import msgspec
from pydantic import ValidationError

from service.wire.limits import MAX_TARGETS
from service.wire.strict_json import parse_object
from tensorkiln.errors import InvalidGraphError, LimitExceededError, RequestError, TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.limits import MAX_NODES, MAX_SYMBOLS
from tensorkiln.options import CompileOptions, option_reason
from tensorkiln.target import Target

NATIVE: Final = "cpu:native"
_BOUNDED: Final = {"nodes": MAX_NODES, "symbolic_vars": MAX_SYMBOLS}
_LIMITS: Final = {"nodes": "nodes", "symbolic_vars": "symbols"}
MOST_FIELDS: Final = 64
"""Of an object in a request: none that the contract knows has half as many, but the metadata of vars."""


_UNKNOWN: Final = re.compile("^Object contains unknown field `(.*)`$", re.DOTALL)
"""What msgspec says of one."""

OF_COMPILE: Final = (("graph", "target"), ("options",))
"""The required and the optional fields of a compile request."""
OF_VALIDATE: Final = (("graph",), ())
"""Those of a request for a validation."""
MODULE: Final = "stablehlo"
"""A field that may stand in the place of `graph`, with `DIMS` and `SHAPES` beside it."""
BUILDER: Final = "builder"
"""Another one: lines of the builder as text."""
DIMS: Final = "dims"
SHAPES: Final = "shapes"
OF_TRANSLATE: Final = ((MODULE,), (DIMS, SHAPES))
"""Those of a request for a translation."""
_SOURCES: Final = {"graph": ("graph", MODULE, BUILDER), MODULE: (MODULE, BUILDER)}
"""What may stand in the place of a required field: one of these, itself included."""


def parse_envelope(body: bytes, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a body; RequestError when one is missing or unknown."""
    _refuse_many_fields(body, _known(required, optional))
    return check_fields(parse_object(body), required, optional)


def _known(required: Collection[str], optional: Collection[str]) -> tuple[str, ...]:
    """Every field that a body may have, each once."""
    sources = [source for name in required for source in _SOURCES.get(name, ())]
    beside = (DIMS, SHAPES) if MODULE in sources else ()
    return tuple(dict.fromkeys((*required, *optional, *sources, *beside)))


def _refuse_many_fields(body: bytes, known: tuple[str, ...]) -> None:
    """Refuse a body with many fields at the first that is unknown, before anything is made of the others.

    Of few, all that is wrong with the body is looked at, and the first is told.
    """
    if body.count(b":") <= MOST_FIELDS:
        return
    try:
        _decoder(known).decode(body)
    except msgspec.ValidationError as error:
        name = _UNKNOWN.search(str(error))
        if name is not None:
            raise _unknown_field(name[1], known) from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # what else is wrong has its own words


def _unknown_field(name: str, known: Collection[str]) -> RequestError:
    return RequestError(f"The body has a field {name[:64]!r}; it takes {', '.join(known)}.")


@cache
def _decoder(known: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    fields = [(name, msgspec.Raw, msgspec.Raw(b"null")) for name in known]
    return msgspec.json.Decoder(msgspec.defstruct("Fields", fields, forbid_unknown_fields=True))


def check_fields(fields: Any, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """`fields` itself; RequestError when it is not an object, or one of its fields is missing or unknown."""
    if not isinstance(fields, dict):
        raise RequestError("The request is not a JSON object.")
    source = next((name for name in required if name in _SOURCES), None)
    if source is not None:
        given = [name for name in _SOURCES[source] if name in fields]
        if len(given) > 1:
            stated = " and ".join(given)
            raise RequestError(f"The body has {stated}; it takes one of them.", pointers=[f"/{given[-1]}"])
        if given and given[0] != "graph":
            required = [given[0] if name == source else name for name in required]
            others = [name for name in optional if name not in (DIMS, SHAPES)]
            optional = [*others, *((DIMS, SHAPES) if given[0] == MODULE else ())]
    missing = [name for name in required if name not in fields]
    if missing:
        raise RequestError(f"The body lacks {', '.join(missing)}.", pointers=[f"/{name}" for name in missing])
    unknown = fields.keys() - set(required) - set(optional)
    if unknown:
        raise _unknown_field(min(unknown), (*required, *optional))
    return fields


def parse_graph(value: Any) -> Graph:
    """The graph of a request. InvalidGraphError, UnsupportedGraphError or LimitExceededError as the contract says."""
    if isinstance(value, dict):
        for name, most in _BOUNDED.items():
            _refuse_at_a_glance(name, value.get(name), most)
        _refuse_wide_objects(value)
    return Graph.model_validate(value)


def _refuse_wide_objects(graph: dict[str, Any]) -> None:
    """Refuse objects with many fields: the contract would have a word for each that is unknown."""
    metadata, entries = list(_metadata(graph)), 0
    for pointer, each in metadata:
        entries += len(each)
        if entries > MAX_NODES:
            raise InvalidGraphError(
                f"vars_metadata has {entries} entries; a graph of {MAX_NODES} nodes, which is the limit, has no more",
                pointers=[pointer],
            )
    wide = {id(each) for _, each in metadata}
    waiting: list[tuple[str, Any]] = [("", graph)]
    while waiting:
        pointer, value = waiting.pop()
        if isinstance(value, dict):
            if id(value) not in wide:
                refuse_many(value, pointer, InvalidGraphError)
            waiting += [(f"{pointer}/{name}", each) for name, each in value.items() if isinstance(each, dict | list)]
        else:
            waiting += [(f"{pointer}/{at}", each) for at, each in enumerate(value) if isinstance(each, dict | list)]


def _metadata(graph: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the graph, and those of its loops, say of their vars: an entry for each."""
    waiting: list[tuple[str, Any]] = [("", graph)]
    while waiting:
        pointer, value = waiting.pop()
        if not isinstance(value, dict):
            continue
        if isinstance(found := value.get("vars_metadata"), dict):
            yield f"{pointer}/vars_metadata", found
        nodes: Any = value.get("nodes")
        for at, node in enumerate(cast("list[Any]", nodes) if isinstance(nodes, list) else []):
            if isinstance(node, dict) and node.get("node") == "while":
                waiting += [(f"{pointer}/nodes/{at}/{name}", node.get(name)) for name in ("condition", "body")]


def refuse_many(fields: dict[str, Any], pointer: str, error: type[TensorkilnError]) -> None:
    """`error` when an object has more fields than any that a request may have."""
    if len(fields) > MOST_FIELDS:
        raise error(
            f"an object has {len(fields)} fields; none that a request may have has more than {MOST_FIELDS}",
            pointers=[pointer],
        )


def _refuse_at_a_glance(name: str, entries: Any, most: int) -> None:
    """What is wrong with a list as a whole: the contract looks into every entry first, and has a word for each."""
    if not isinstance(entries, list):
        return
    found: list[Any] = entries
    if len(found) > most:
        limit = _LIMITS[name]
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
    """The options of a request, every value of exactly the type that the contract says."""
    if isinstance(value, dict):
        refuse_many(value, "/options", RequestError)
    try:
        return CompileOptions.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"/{step}" for step in ("options", *first["loc"]))
        raise RequestError(f"The options cannot be used: {option_reason(error)}", pointers=[where]) from None
