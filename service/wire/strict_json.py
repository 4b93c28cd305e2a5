"""JSON as the service takes it: UTF-8, no repeated keys, no NaN or Infinity, bounded depth."""

from __future__ import annotations

from typing import Any, Final

from pydantic_core import from_json

from tensorkiln.errors import LimitExceededError, RequestError
from tensorkiln.limits import MAX_JSON_DEPTH
from tensorkiln.nodes.problems import json_depth
from tensorkiln.strict_json import RepeatedKeyError, keys_in, most_keys, refuse_repeated_keys, with_signed_zeros

_DEPTH_EXCEEDED: Final = "recursion limit"


def parse_object(text: bytes) -> dict[str, Any]:
    """The object that `text` spells.

    RequestError when it is not the JSON of an object, or repeats a key; LimitExceededError when it is
    nested too deep.
    """
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
            raise _too_deep(json_depth(text)) from None
        raise RequestError(
            f"The body is not JSON: {error}. Non-finite numbers are written as the strings inf, -inf and nan."
        ) from None
    if not isinstance(content, dict):
        raise RequestError("The body is not a JSON object.")
    return content


def _too_deep(depth: int) -> LimitExceededError:
    return LimitExceededError(
        f"The JSON is nested {depth} deep; the limit is {MAX_JSON_DEPTH}.",
        limit="json_depth",
        maximum=MAX_JSON_DEPTH,
        actual=depth,
    )
