"""A real service that asks for credentials, with a keyring of its own."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from service.identity.caller import Scope
from service.identity.keyring import Keyring
from service.identity.register import TenantRecord
from tests.service.failing import failing
from tests.service.server import Server

GUARDED: Final = pytest.mark.xdist_group("guarded")
UNGUARDED: Final = pytest.mark.xdist_group("unguarded")
"""Of what uses the services that tests share: one process runs all of it, and starts one of each."""

WORKER: Final = (Scope.COMPILE, Scope.CACHE_READ, Scope.CACHE_WRITE)


class Guarded(Server):
    """A service whose keyring has a key before it starts."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.keyring = Keyring(home / "identity")
        self.keyring.make("first", "nobody", [Scope.ADMIN], None)
        super().__init__(home, **settings)

    def key(self, tenant: str, *scopes: Scope, lifetime: timedelta | None = None) -> str:
        """A new key of `tenant`, with the scopes of a worker unless others are named."""
        return self.keyring.make("test", tenant, scopes or WORKER, lifetime).text

    def tenant(self, name: str, **record: Any) -> None:
        """What a tenant has instead of the defaults."""
        self.keyring.set_tenant(name, TenantRecord(**record))

    def send(
        self,
        credential: str | None,
        method: str,
        path: str,
        body: bytes | None = None,
        fails: str | None = None,
        **headers: str,
    ) -> httpx2.Response:
        """The answer to a request with this credential."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if credential is not None:
            named["Authorization"] = f"Bearer {credential}"
        if body is not None:
            body = body if fails is None else failing(body, fails)
            named["Content-Type"] = "application/json"
        return self.http.request(method, path, content=body, headers=named)


def refusal(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of a problem."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["code"]


def artifacts(response: httpx2.Response) -> list[str]:
    """The artifacts that the programs of an answer name."""
    assert response.status_code == 200, response.text
    return [kernel["artifact"] for program in response.json()["programs"] for kernel in program["kernels"]]


def program(response: httpx2.Response) -> str:
    """The digest of the only program of an answer."""
    assert response.status_code == 200, response.text
    (only,) = response.json()["programs"]
    return only["digest"]
