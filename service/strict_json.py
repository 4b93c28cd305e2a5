"""JSON as the service takes it: UTF-8, no repeated keys, no NaN or Infinity, bounded depth."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic_core import from_json

from tensorkiln.errors import LimitExceededError, RequestError
from tensorkiln.limits import MAX_JSON_DEPTH

_DEPTH_EXCEEDED: Final = "recursion limit"


class _RepeatedKeyError(ValueError):
    pass


def parse_object(text: bytes) -> dict[str, Any]:
    """The object that `text` spells.

    RequestError when it is no JSON, no object, or says something twice; LimitExceededError when it is nested too deep.
    """
    try:
        # Before Python's parser, which has no limit of depth and takes unpaired surrogates.
        from_json(text, allow_inf_nan=False)
        content = json.loads(text, object_pairs_hook=_without_repetition)
    except _RepeatedKeyError as error:
        raise RequestError(str(error)) from None
    except ValueError as error:
        if _DEPTH_EXCEEDED in str(error):
            raise LimitExceededError(
                f"The JSON is nested more than {MAX_JSON_DEPTH} deep.",
                limit="json_depth",
                maximum=MAX_JSON_DEPTH,
                actual=MAX_JSON_DEPTH + 1,
            ) from None
        raise RequestError(
            f"The body is not JSON: {error}. Non-finite numbers are written as the strings inf, -inf and nan."
        ) from None
    if not isinstance(content, dict):
        raise RequestError("The body is not a JSON object.")
    return content


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _RepeatedKeyError(f"The key {repeated[:64]!r} stands twice in one object.")
    return content
