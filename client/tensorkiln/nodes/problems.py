"""Conversion of pydantic's validation errors of a graph to TensorkilnErrors with JSON Pointers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, cast

import numpy as np
from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from ..errors import InvalidGraphError, LimitExceededError, TensorkilnError, UnsupportedGraphError
from ..limits import MAX_JSON_DEPTH, MAX_NODES, MAX_RANK, MAX_SYMBOLS
from ..nearest import did_you_mean, nearest, quoted
from ..not_json import is_path, path_for_graph
from ..reasons import reason
from .other_names import MEANT

MAX_POINTERS = 16
_MAX_STEP = 200
"""The most characters of one step of a pointer."""
Location = tuple[int | str, ...]

_EXTRA = "extra_forbidden"
_OTHER_FIELDS = {
    "type": "dtype",
    "kind": "node",
    "inputs": "input_vars",
    "outputs": "output_vars",
    "version": "schema",
    "min": "min_val",
    "max": "max_val",
    "output": "out_var",
    "out": "out_var",
}
_OF_REQUESTS = ("target", "targets", "options")
_LIST_LIMITS = {MAX_NODES: "nodes", MAX_SYMBOLS: "symbols", MAX_RANK: "rank"}


def json_pointer(path: Iterable[str | int]) -> str:
    """The RFC 6901 pointer of a path of keys and positions."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def json_depth(text: str | bytes) -> int:
    """The deepest nesting of brackets in a JSON text, strings excepted."""
    content = text.encode() if isinstance(text, str) else text
    # Without escapes, every second quotation mark ends a string.
    plain = (_STRING.sub(b"", content) if b"\\" in content else content).translate(None, _OTHERS)
    deepest = depth = 0
    inside = np.uint8(0)
    # In small parts, which reuse memory: allocating new memory takes longer than the work.
    for start in range(0, len(plain), _PART):
        part = np.frombuffer(plain, np.uint8, min(_PART, len(plain) - start), start)
        in_strings = np.bitwise_xor.accumulate((part == _QUOTE).view(np.uint8)) ^ inside
        levels = (_STEPS[part] * (in_strings ^ 1).view(np.int8)).cumsum(dtype=np.int32)
        deepest = max(deepest, depth + int(levels.max()))
        depth += int(levels[-1])
        inside = in_strings[-1]
    return deepest


_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_QUOTE = ord('"')
_OTHERS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_PART = 1 << 14
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def translate_json(error: ValidationError, text: str | bytes) -> TensorkilnError:
    """The error for a JSON text that pydantic refused."""
    try:
        data = from_json(text)
    except TypeError:
        return InvalidGraphError("the graph is not JSON: a string has an unpaired surrogate")
    except ValueError as cause:
        plain = text if isinstance(text, str) else text.decode("utf-8", "replace")
        if is_path(plain):
            return InvalidGraphError(path_for_graph(plain))
        if "recursion limit" not in str(cause):
            return InvalidGraphError(f"the graph is not JSON: {cause}")
        depth = json_depth(text)
        return LimitExceededError(
            f"the JSON is nested {depth} deep; the limit is {MAX_JSON_DEPTH}",
            limit="json_depth",
            maximum=MAX_JSON_DEPTH,
            actual=depth,
        )
    return translate(error, data)


def translate(error: ValidationError, data: object) -> TensorkilnError:
    """The error for the object `data` that pydantic refused. Misspelt fields are reported first."""
    found = error.errors(include_url=False, include_input=False)
    for detail in found:
        limit = _limit(detail, data)
        if limit is not None:
            return limit
    misspelt = _misspelt(found)
    paired = set(misspelt.values())
    first = [detail for detail in found if detail["type"] == _EXTRA]
    others = [detail for detail in found if detail["type"] != _EXTRA and detail["loc"] not in paired]
    # Of a union's errors at one place, the last is the most informative.
    wrong = {_pointer(detail, data): detail for detail in (*first, *others)}
    pointer, detail = next(iter(wrong.items()))
    if pointer == "/schema" and _is_other_schema(data):
        return UnsupportedGraphError(
            "the schema version is not supported; this version reads schema 1", pointers=[pointer]
        )
    said = _unknown(detail, misspelt) if detail["type"] == _EXTRA else _reason(detail, data)
    more = f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return InvalidGraphError(f"{said}{more}", pointers=[_shortened(each) for each in list(wrong)[:MAX_POINTERS]])


def _shortened(pointer: str) -> str:
    """The pointer up to the first step that is too long to show; keys of a request are untrusted."""
    return "/".join(takewhile(lambda step: len(step) <= _MAX_STEP, pointer.split("/")))


def _is_other_schema(data: object) -> bool:
    return isinstance(data, dict) and type(cast("dict[str, object]", data).get("schema")) is int


def _misspelt(found: list[ErrorDetails]) -> dict[Location, Location]:
    """Pairs of an unknown field and a similar missing field, among the first errors, which are reported."""
    beside: dict[Location, dict[str, Location]] = {}
    for detail in found:
        if detail["type"] == "missing":
            beside.setdefault(detail["loc"][:-1], {})[str(detail["loc"][-1])] = detail["loc"]
    pairs: dict[Location, Location] = {}
    for detail in islice((each for each in found if each["type"] == _EXTRA), MAX_POINTERS):
        lacking = beside.get(detail["loc"][:-1], {})
        meant = nearest(str(detail["loc"][-1]), lacking, _OTHER_FIELDS)
        if meant in lacking:
            pairs[detail["loc"]] = lacking.pop(meant)
    return pairs


def _unknown(detail: ErrorDetails, misspelt: Mapping[Location, Location]) -> str:
    *place, name = detail["loc"]
    if detail["loc"] in misspelt:
        return f"there is no field {quoted(name)}; did you mean {misspelt[detail['loc']][-1]}?"
    if name == "graph" and not place:
        return 'the graph is inside of a field "graph", as in a request: give the value of that field'
    if name in _OF_REQUESTS and not place:
        return f"a graph has no field {name}: give it as an argument of compile, or beside the graph in a request"
    known = _fields_at(place)
    listed = f"; known are {', '.join(known)}" if known else ""
    return f"there is no field {quoted(name)}{did_you_mean(str(name), known) or listed}"


def _reason(detail: ErrorDetails, data: object) -> str:
    path, value = _walk(detail, data)
    match detail["type"]:
        case "union_tag_invalid":
            return _no_such_kind(str(detail.get("ctx", {}).get("tag", "")))
        case "union_tag_not_found":
            return 'a node has a field "node" that says its kind, such as "binop"'
        case "missing" if detail["loc"] == ("schema",):
            return 'the field schema is missing: write "schema": 1'
        case _ if "[key]" in detail["loc"]:
            *_, field, key = detail["loc"][: detail["loc"].index("[key]")]
            return f'{quoted(key)} is not a key of {field}; its keys are var numbers in quotes, such as "0"'
        case "model_type" | "model_attributes_type" if not path:
            return f"a graph is a JSON object, not {quoted(data)}"
        case _:
            return reason(detail, value)


def _no_such_kind(tag: str) -> str:
    from .program import NODE_KINDS

    meant = MEANT.get(tag) or MEANT.get(nearest(tag, MEANT) or "") if nearest(tag, NODE_KINDS) is None else None
    hint = f"; {meant}" if meant else did_you_mean(tag, NODE_KINDS) or "; GET /capabilities lists the kinds"
    return f"there is no node {quoted(tag)}{hint}"


def _fields_at(place: Sequence[int | str]) -> list[str]:
    """The fields of the object at a location in pydantic's schema of a graph; empty when there is no such object."""
    from .program import NODE_KINDS
    from .symbolic import SymVar

    match place:
        case []:
            return ["schema", "name", "nodes", "vars_metadata", *_VARS, "symbolic_vars"]
        case ["vars_metadata", _]:
            return ["dtype", "shape", "device"]
        case ["symbolic_vars", _]:
            return [*SymVar.model_fields]
        case [*_, str(kind)] if kind in NODE_KINDS:
            return [*NODE_KINDS[kind].model_fields]
        case _:
            return []


_VARS = ("input_vars", "parameter_vars", "output_vars")


def _limit(detail: ErrorDetails, data: object) -> LimitExceededError | None:
    context = detail.get("ctx", {})
    pointers = [_pointer(detail, data)]
    if detail["type"] == "limit":
        name, maximum, actual = context["limit"], context["maximum"], context["actual"]
    elif detail["type"] == "recursion_loop":
        name, maximum, actual = "json_depth", MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1
    elif detail["type"] == "too_long" and context["max_length"] in _LIST_LIMITS:
        maximum = context["max_length"]
        name, actual = _LIST_LIMITS[maximum], len(cast("list[object]", _walk(detail, data)[1]))
    else:
        return None
    message = f"the {name.replace('_', ' ')} limit is {maximum}, the graph has {actual}"
    return LimitExceededError(message, pointers=pointers, limit=name, maximum=maximum, actual=actual)


def _pointer(detail: ErrorDetails, data: object) -> str:
    return json_pointer(_walk(detail, data)[0])


def _walk(detail: ErrorDetails, data: object) -> tuple[list[str | int], object]:
    """The path of an error in `data`, and the value there: pydantic's location without names of union members."""
    path: list[str | int] = []
    current: Any = data
    at_node = False
    for step in detail["loc"]:
        if at_node:
            at_node = False
        elif _holds(current, step):
            path.append(step)
            current = current[step]
            at_node = step == "ast" or path[-2:-1] == ["nodes"]
        elif detail["type"] == "missing":
            path.append(step)
    return path, current


def _holds(container: object, step: str | int) -> bool:
    if isinstance(container, dict):
        return step in container
    return isinstance(container, list | tuple) and isinstance(step, int) and step < len(cast("list[object]", container))
