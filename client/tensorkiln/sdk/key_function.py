"""The key of each request where a function of the caller's gives it."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import RequestError, TensorkilnError
from ..settings import checked_key


def given_key(token: Callable[[], object]) -> str | None:
    """The key of a function of the caller's, which may raise or return anything. RequestError if it returns no key."""
    try:
        key = token()
    except TensorkilnError:
        raise
    except Exception as failure:
        raise RequestError(f"The function api_key raised {type(failure).__name__}: {failure}") from failure
    if not isinstance(key, str):
        raise RequestError(f"The function api_key returned {type(key).__name__}: return a string.")
    return checked_key(key)
