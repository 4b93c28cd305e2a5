"""Plain-language messages for pydantic's validation errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import ErrorDetails

from .nearest import DTYPE_NAMES, did_you_mean, quoted

NOTHING: Final = object()
"""Marks an unknown value."""

_NAMES: Final = re.compile(r"'([^']*)'")
_NAME_PATTERN: Final = "[A-Za-z_][A-Za-z0-9_.]{0,63}"
_BY_PATTERN: Final = {
    rf"^$|^{_NAME_PATTERN}$": "1 to 64 letters, digits, _ or ., the first of them a letter or _",
    rf"^{_NAME_PATTERN}$": "1 to 64 letters, digits, _ or ., the first of them a letter or _",
    r"^[0-9a-f]{64}$": "a SHA-256: 64 lower-case hexadecimal digits",
}

_EXPECTED: Final[Mapping[str, str]] = {
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "int_parsing_size": "an integer of 64 bits",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "float_type": "a number",
    "float_parsing": "a number",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
}
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("greater than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def reason(detail: ErrorDetails, value: object = NOTHING, *, subject: str | None = None) -> str:
    """The message for an error in a field, called `subject` if given; `value` is the input.

    Without `value`, the input is taken from pydantic's error; nothing is quoted if that excludes it (possible secrets).
    """
    if detail["type"] == "extra_forbidden":
        return f"there is no field {quoted(detail['loc'][-1])}"
    subject = subject or _subject(detail)
    if value is NOTHING:
        value = detail.get("input", NOTHING)
    context: Mapping[str, Any] = detail.get("ctx") or {}
    kind = detail["type"]
    said = _SAID.get(kind)
    if said is not None:
        return said(subject, value, context)
    if kind in _EXPECTED:
        return f"{subject} has to be {_EXPECTED[kind]}{_not(value)}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{subject} has to be {words} {context.get(bound)}{_not(value)}"
    return f"{subject}: {detail['msg'].removeprefix('Value error, ')}" if subject != "it" else detail["msg"]


def _subject(detail: ErrorDetails) -> str:
    field = next((step for step in reversed(detail["loc"]) if isinstance(step, str) and step.isidentifier()), "it")
    position = detail["loc"][-1] if detail["loc"] and isinstance(detail["loc"][-1], int) else None
    return field if position is None or field == "it" else f"{field}[{position}]"


def _not(value: object) -> str:
    return "" if value is NOTHING else f", not {_shown(value)}"


def _shown(value: object) -> str:
    """The value in JSON notation."""
    return json.dumps(value) if value is None or isinstance(value, bool) else quoted(value)


def _missing(subject: str, value: object, context: Mapping[str, Any]) -> str:
    return f"the field {subject} is missing"


def _one_of(subject: str, value: object, context: Mapping[str, Any]) -> str:
    known = _NAMES.findall(str(context.get("expected", "")))
    others = DTYPE_NAMES if "float32" in known else None
    if value is NOTHING:
        return f"{subject} has to be one of {', '.join(known)}"
    if not isinstance(value, str):
        return f"{subject} has to be a string, not {_shown(value)}{did_you_mean('', known)}"
    what = "dtype" if "float32" in known else f"value of {subject}"
    return f"{quoted(value)} is not a {what}{did_you_mean(value, known, others) or '; known are ' + ', '.join(known)}"


def _pattern(subject: str, value: object, context: Mapping[str, Any]) -> str:
    pattern = str(context.get("pattern", ""))
    choices = re.fullmatch(r"\^\(([a-z|_]+)(\|\[0-9a-f\]\{64\})?\)\$", pattern)
    if choices:
        return f"{subject} has to be one of {', '.join(choices[1].split('|'))}{_not(value)}"
    return f"{subject} has to be {_BY_PATTERN.get(pattern, f'a text that matches {pattern}')}{_not(value)}"


def _too_long(subject: str, value: object, context: Mapping[str, Any]) -> str:
    return f"{subject} has {context.get('actual_length', 'too many')} entries, the most is {context.get('max_length')}"


def _too_short(subject: str, value: object, context: Mapping[str, Any]) -> str:
    return f"{subject} has {context.get('actual_length', 'too few')} entries, the least is {context.get('min_length')}"


def _judged(subject: str, value: object, context: Mapping[str, Any]) -> str:
    """The message of an error raised by one of tensorkiln's validators."""
    return str(context.get("error", "the value cannot be used"))


_SAID: Final[Mapping[str, Callable[[str, object, Mapping[str, Any]], str]]] = {
    "missing": _missing,
    "enum": _one_of,
    "literal_error": _one_of,
    "string_pattern_mismatch": _pattern,
    "too_long": _too_long,
    "too_short": _too_short,
    "value_error": _judged,
    "assertion_error": _judged,
}
