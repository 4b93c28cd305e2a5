"""The client with a credential, and without."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from service.identity.caller import Scope
from service.identity.keyring import Keyring
from tensorkiln import Client
from tensorkiln.errors import (
    ExpiredCredentialError,
    ForbiddenError,
    InvalidCredentialError,
    MissingCredentialError,
    RateLimitedError,
    RequestError,
    error_from_problem,
)
from tests.identity.guarded import GUARDED, Guarded
from tests.service.bodies import graph
from tests.service.forked import forked_embedding

pytestmark = GUARDED
X = np.ones((4, 3), np.float32)


def test_a_client_with_a_key_compiles_and_runs(guarded: Guarded, tmp_path: Path) -> None:
    with Client(guarded.url, api_key=guarded.key("sdk"), cache_dir=tmp_path) as client:
        doubled, negated = client.compile(graph())(X, n=3)
    np.testing.assert_array_equal(doubled, 2 * X)
    np.testing.assert_array_equal(negated, -X)


def test_the_key_may_come_from_the_environment(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KILN_API_KEY", f"{guarded.key('sdk')}\n")
    with Client(guarded.url, cache_dir=tmp_path) as client:
        assert client.validate(graph())["valid"]


def test_a_function_gives_the_token_of_each_request(guarded: Guarded, tmp_path: Path) -> None:
    keys = iter([guarded.key("sdk"), guarded.key("sdk", lifetime=timedelta(seconds=-1))])
    with Client(guarded.url, api_key=lambda: next(keys), cache_dir=tmp_path) as client:
        client.validate(graph())
        with pytest.raises(ExpiredCredentialError):
            client.validate(graph())


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (lambda _: "", MissingCredentialError),
        (lambda _: "kiln_x", InvalidCredentialError),
        (lambda guarded: guarded.key("sdk", lifetime=timedelta(seconds=-1)), ExpiredCredentialError),
        (lambda guarded: guarded.key("sdk", Scope.CACHE_READ), ForbiddenError),
    ],
)
def test_a_refusal_is_raised_as_its_class(
    guarded: Guarded, tmp_path: Path, key: Callable[[Guarded], str], error: type[Exception]
) -> None:
    with Client(guarded.url, api_key=key(guarded), cache_dir=tmp_path) as client, pytest.raises(error):
        client.validate(graph())


def test_a_key_that_no_header_can_carry_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    for key in ("two words", "schlüssel", "line\nbreak"):
        with pytest.raises(RequestError, match="API key") as caught:
            Client("http://127.0.0.1:9", api_key=key, cache_dir=tmp_path)
        assert key not in str(caught.value)


def test_an_embedded_service_asks_for_nothing_though_its_home_has_keys(tmp_path: Path) -> None:
    Keyring(tmp_path / "identity").make("", "acme", [Scope.ADMIN], None)
    with forked_embedding(), Client("", cache_dir=tmp_path) as client:
        assert client.validate(graph())["valid"]


def test_a_limit_is_read_from_its_problem() -> None:
    sent = RateLimitedError("Too much.", details={"limit": "in_flight", "retry_after_s": 7})
    read = error_from_problem(sent.to_problem())
    assert isinstance(read, RateLimitedError)
    assert (read.retryable, read.retry_after_s, read.status) == (True, 7, 429)
    assert RateLimitedError("Too much.").retry_after_s == 1
