"""Pydantic's verdict on a wire object, told as one of our errors with JSON Pointers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from ..errors import InvalidGraphError, LimitExceededError, TensorkilnError, UnsupportedGraphError
from ..limits import MAX_JSON_DEPTH, MAX_NODES, MAX_RANK, MAX_SYMBOLS

MAX_POINTERS = 16
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
    # In parts that memory at hand has room for: new memory takes longer than what is done in it.
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
    """The error for the object `data` that pydantic refused."""
    found = error.errors(include_url=False, include_input=False)
    for detail in found:
        limit = _limit(detail, data)
        if limit is not None:
            return limit
    reasons = {_pointer(detail, data): _reason(detail) for detail in found}
    pointer, reason = next(iter(reasons.items()))
    if pointer == "/schema" and _is_other_schema(data):
        return UnsupportedGraphError(
            "the schema version is not supported; this version reads schema 1", pointers=[pointer]
        )
    others = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return InvalidGraphError(f"{reason}{others}", pointers=list(reasons)[:MAX_POINTERS])


def _is_other_schema(data: object) -> bool:
    return isinstance(data, dict) and type(cast("dict[str, object]", data).get("schema")) is int


def _reason(detail: ErrorDetails) -> str:
    field = next((step for step in reversed(detail["loc"]) if isinstance(step, str) and step.isidentifier()), "")
    return f"{field}: {detail['msg']}" if field else detail["msg"]


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
    """The path of an error in `data`, and what is there: pydantic's location less the names of union members."""
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
