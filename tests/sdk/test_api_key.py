"""A function that gives API keys, and what else it may do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import AsyncClient, Client
from tensorkiln.errors import RequestError
from tests.sdk.scripted import ScriptedServer


def raising() -> str:
    raise KeyError("vault")


@pytest.mark.parametrize(
    ("api_key", "said"),
    [(lambda: b"key", "api_key returned bytes"), (lambda: None, "returned NoneType"), (raising, "raised KeyError")],
    ids=["bytes", "None", "raises"],
)
def test_a_function_that_gives_no_key_is_named(
    api_key: Callable[[], Any], said: str, scripted: ScriptedServer, tmp_path: Path
) -> None:
    async def in_loop() -> None:
        async with AsyncClient(scripted.url, cache_dir=tmp_path, api_key=api_key) as client:
            await client.capabilities()

    with Client(scripted.url, cache_dir=tmp_path, api_key=api_key) as client:
        for call in (client.capabilities, lambda: asyncio.run(in_loop())):
            with pytest.raises(RequestError, match=said):
                call()
    assert scripted.requests == []
