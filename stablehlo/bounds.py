"""Parser for a request's bounds of dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tensorkiln.errors import LimitExceededError, RequestError
from tensorkiln.limits import I64_MAX, MAX_SYMBOLS

_FIELDS: Final = frozenset({"min", "max"})


def parse_dims(value: Any) -> Mapping[str, tuple[int, int]]:
    """Inclusive bounds by the name of a symbol, or by the positions `argument.dimension`.

    RequestError for an invalid value, LimitExceededError for more than `MAX_SYMBOLS` entries.
    """
    if not isinstance(value, dict):
        raise RequestError("dims is an object: bounds by the name of a dimension.", pointers=["/dims"])
    entries: dict[str, Any] = value
    if len(entries) > MAX_SYMBOLS:
        raise LimitExceededError(
            f"dims has {len(entries)} entries; a graph has at most {MAX_SYMBOLS} symbols.",
            pointers=["/dims"],
            limit="symbols",
            maximum=MAX_SYMBOLS,
            actual=len(entries),
        )
    return {name: _bounds(name, record) for name, record in entries.items()}


def _bounds(name: str, record: Any) -> tuple[int, int]:
    where = [f"/dims/{name[:64].replace('~', '~0').replace('/', '~1')}"]
    if not isinstance(record, dict) or record.keys() != _FIELDS:
        raise RequestError("The bounds of a dimension are an object with min and max.", pointers=where)
    low, high = record["min"], record["max"]
    if any(isinstance(each, bool) or not isinstance(each, int) for each in (low, high)):
        raise RequestError("The bounds of a dimension are integers.", pointers=where)
    if not 0 <= low <= high <= I64_MAX:
        raise RequestError("The bounds of a dimension are not negative, and min is not above max.", pointers=where)
    return low, high
