"""A function that gives API keys, and what else it may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorkiln.errors import RequestError
from tests.sdk.conftest import Connect
from tests.sdk.scripted import ScriptedServer


def raising() -> str:
    raise KeyError("vault")


@pytest.mark.parametrize(
    ("api_key", "said"),
    [(lambda: b"key", "api_key returned bytes"), (lambda: None, "returned NoneType"), (raising, "raised KeyError")],
    ids=["bytes", "None", "raises"],
)
def test_a_function_that_gives_no_key_is_named(
    api_key: Callable[[], Any], said: str, scripted: ScriptedServer, connect: Connect
) -> None:
    with pytest.raises(RequestError, match=said):
        connect(scripted.url, api_key=api_key).capabilities()
    assert scripted.requests == []
