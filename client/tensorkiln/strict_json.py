"""JSON without repeated keys.

Python's and pydantic's parsers keep the last value of a repeated key, other readers may not. Such a text is ambiguous,
so the wire format forbids it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, TypeVar, cast

from .nodes.problems import json_pointer

Text = TypeVar("Text", bound=str | bytes)

_NEGATIVE_ZERO: Final = r"-0(?<![0-9eE]-0)(?![0-9.eE])"
_OR_STRING: Final = rf'("(?:[^"\\]++|\\.)*+")|{_NEGATIVE_ZERO}'
_TEXT: Final = re.compile(_NEGATIVE_ZERO), re.compile(_OR_STRING), "-0.0"
_BYTES: Final = re.compile(_NEGATIVE_ZERO.encode()), re.compile(_OR_STRING.encode()), b"-0.0"


class RepeatedKeyError(ValueError):
    """An object has a key twice. `pointer` is the JSON Pointer of that key."""

    def __init__(self, key: str, pointer: str) -> None:
        super().__init__(f"the key {key[:64]!r} appears twice in one object")
        self.key = key
        self.pointer = pointer


def parse(text: str | bytes | bytearray) -> Any:
    """Parse a JSON text. RepeatedKeyError for a repeated key, another ValueError when it is not JSON."""
    repeating: list[_Repeating] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) == len(pairs):
            return content
        repeating.append(_Repeating(content, pairs))
        return repeating[-1]

    value = json.loads(text, object_pairs_hook=build)
    if repeating:
        raise _error(value, repeating[0])
    return value


def with_signed_zeros(text: Text) -> Text:
    """A JSON text with `-0` written as `-0.0`.

    Some encoders write a negative zero as `-0`, which parsers read as an integer without a sign.
    """
    stands, or_string, zero = cast(Any, _TEXT if isinstance(text, str) else _BYTES)
    return cast(Text, or_string.sub(lambda found: found[1] or zero, text)) if stands.search(text) else text


def may_repeat_keys(text: str | bytes | bytearray, known: int) -> bool:
    """Whether a JSON text may have a repeated key, if its objects have at least `known` different keys.

    Much faster than parsing the text.
    """
    content = text.encode() if isinstance(text, str) else text
    return content.count(b":") > known and most_keys(content) > known


def most_keys(text: bytes | bytearray) -> int:
    """An upper bound of the number of keys in a JSON text.

    It counts colons after a quotation mark or white space. Colons inside strings, such as in a target's name, seldom
    follow one of these.
    """
    return sum(text.count(b"%c:" % before) for before in b'" \t\n\r' if before in text)


def keys_in(value: Any, enough: float = math.inf) -> int:
    """The number of keys in all objects of a JSON value; the count stops once it reaches `enough`."""
    found, level = 0, [value]
    while found < enough and (level := [each for each in level if type(each) in _CONTAINERS]):
        inner: list[Any] = []
        for each in level:
            if type(each) is dict:
                found += len(each)
                inner += each.values()
            else:
                inner += each
        level = inner
    return found


_CONTAINERS: Final = frozenset({dict, list})


def refuse_repeated_keys(text: str | bytes | bytearray) -> None:
    """RepeatedKeyError for a repeated key in a JSON text. Faster than `parse`, because it builds no values."""

    def look(pairs: list[tuple[str, None]]) -> None:
        if len(dict(pairs)) < len(pairs):
            parse(text)

    json.loads(text, object_pairs_hook=look)


class _Repeating(dict[str, Any]):
    """An object with a repeated key in its text."""

    def __init__(self, content: dict[str, Any], pairs: list[tuple[str, Any]]) -> None:
        super().__init__(content)
        seen: set[str] = set()
        self.key = next(key for key, _ in pairs if key in seen or seen.add(key))


def _error(root: Any, wanted: _Repeating) -> RepeatedKeyError:
    """The error with the object's path in `root`; the pointer is empty if another repeated key dropped the object."""
    rest: list[tuple[tuple[str | int, ...], Any]] = [((), root)]
    while rest:
        path, value = rest.pop()
        if value is wanted:
            return RepeatedKeyError(wanted.key, json_pointer((*path, wanted.key)))
        if isinstance(value, dict):
            rest += [((*path, key), child) for key, child in cast("dict[str, Any]", value).items()]
        elif isinstance(value, list):
            rest += [((*path, place), child) for place, child in enumerate(cast("list[Any]", value))]
    return RepeatedKeyError(wanted.key, "")
