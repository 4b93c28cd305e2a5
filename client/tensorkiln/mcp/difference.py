"""Differences between two JSON documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

MOST: Final = 100
"""The most differences listed."""
_SHOWN: Final = 200
"""The most characters shown of a value."""
_NOTHING: Final = object()


def differences(here: Any, there: Any) -> dict[str, Any]:
    """The number of differences as `count`, and the first `MOST` as `differences`.

    `at` is a JSON Pointer, `here` and `there` are the shortened values; one that a side lacks is omitted.
    """
    found = _walk(here, there, "")
    first = list(islice(found, MOST))
    return {"count": len(first) + sum(1 for _ in found), "differences": first}


def _walk(here: Any, there: Any, at: str) -> Iterator[dict[str, Any]]:
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        one, other = cast("Mapping[str, Any]", here), cast("Mapping[str, Any]", there)
        for name in dict.fromkeys((*one, *other)):
            yield from _walk(one.get(name, _NOTHING), other.get(name, _NOTHING), f"{at}/{_escaped(name)}")
    elif isinstance(here, list) and isinstance(there, list):
        ones, others = cast("Sequence[Any]", here), cast("Sequence[Any]", there)
        for place in range(max(len(ones), len(others))):
            pair = [each[place] if place < len(each) else _NOTHING for each in (ones, others)]
            yield from _walk(pair[0], pair[1], f"{at}/{place}")
    elif here is _NOTHING or there is _NOTHING or here != there:
        sides = {"here": here, "there": there}
        yield {"at": at, **{side: _shown(value) for side, value in sides.items() if value is not _NOTHING}}


def _escaped(name: str) -> str:
    # RFC 6901, section 3.
    return name.replace("~", "~0").replace("/", "~1")


def _shown(value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
