"""An issuer of tokens: a web server with its public keys, and the private keys to sign with."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from service.identity.tokens import Jwks, PublicKey

AUDIENCE = "kiln"


class TestIssuer:
    """Serves its description and its key set on the loopback; `asked` counts how often the key set was fetched.

    It answers while `answers` is set.
    """

    __test__ = False

    def __init__(self) -> None:
        self.keys: dict[str, RSAKey | ECKey] = {}
        self.more: list[Mapping[str, Any]] = []
        self.asked = 0
        self.fails = False
        self.answers = threading.Event()
        self.answers.set()
        self.add("rsa-1", RSAKey.generate_key(2048))
        self.add("ec-1", ECKey.generate_key("P-256"))
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def add(self, kid: str, key: RSAKey | ECKey) -> None:
        """Publish a key."""
        self.keys[kid] = key

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """One request."""
        self.answers.wait()
        if request.path == "/.well-known/openid-configuration":
            answer: dict[str, Any] = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        else:
            self.asked += 1
            published = [{**key.as_dict(private=False), "kid": kid, "use": "sig"} for kid, key in self.keys.items()]
            answer = {"keys": [*self.more, *published]}
        content = json.dumps(answer).encode()
        with suppress(ConnectionError):  # whoever asked may have waited for long enough
            request.send_response(500 if self.fails else 200)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)

    def token(self, *, kid: str = "rsa-1", alg: str = "RS256", key: Any = None, **claims: Any) -> str:
        """A token that is good for five minutes. `claims` replace the usual ones or join them; None leaves one out."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "repo:acme/net", "iat": now, "nbf": now, "exp": now + 300}
        stated = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        signer = key if key is not None else self.keys[kid]
        return jwt.encode({"alg": alg, "kid": kid}, stated, signer, algorithms=[alg])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.answers.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Counted(Jwks):
    """Keys that count how often they were fetched."""

    fetches = 0

    async def _fetch(self) -> dict[str, PublicKey]:
        self.fetches += 1
        return await super()._fetch()
