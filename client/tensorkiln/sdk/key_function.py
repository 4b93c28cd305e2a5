"""API keys that a caller's function returns for each request."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import RequestError, TensorkilnError
from ..settings import checked_key


def given_key(token: Callable[[], object]) -> str | None:
    """Call the caller's key function. RequestError if it raises or does not return a valid key."""
    try:
        key = token()
    except TensorkilnError:
        raise
    except Exception as failure:
        raise RequestError(f"The function api_key raised {type(failure).__name__}: {failure}") from failure
    if not isinstance(key, str):
        raise RequestError(f"The function api_key returned {type(key).__name__}: return a string.")
    return checked_key(key)
