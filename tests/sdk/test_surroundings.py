"""Proxies and certificates of the environment that cannot be used."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tensorkiln import Client
from tensorkiln.errors import RequestError, TensorkilnError, UnavailableError
from tests.sdk.conftest import Connect, Kiln, one_line
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_doctor import Doctor, doctor

__all__ = ["doctor"]

BROKEN = [
    ("ALL_PROXY", "socks5://user:secret@host:1", "needs the package socksio"),
    ("HTTP_PROXY", "ftp://user:secret@host:1", "URL of a proxy"),
    ("https_proxy", "http://user:secret@[::1", "URL of a proxy"),
    ("HTTP_PROXY", "http://user:secret@host:abc", "URL of a proxy"),
    ("SSL_CERT_FILE", "/nowhere/secret", "certificates"),
    ("SSLKEYLOGFILE", "/nowhere/secret", "certificates"),
]


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith("SSL"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(("variable", "value", "why"), BROKEN)
def test_a_client_names_the_variable_and_not_its_value(
    variable: str, value: str, why: str, tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    if variable == "SSLKEYLOGFILE":
        # Without a file of certificates httpx2 makes a context that logs no keys.
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with pytest.raises(RequestError, match=f"environment variables .*{variable}.*{why}.*unset them") as error:
        connect("https://127.0.0.1:1").capabilities()
    assert "secret" not in error.value.message


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "http://:80"])
def test_a_missing_proxy_is_no_traceback(proxy: str, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(TensorkilnError) as error:
        connect("http://service.invalid", timeout_s=0.5).capabilities()
    assert isinstance(error.value, RequestError | UnavailableError)


def test_only_tls_needs_certificates(scripted: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/secret")
    scripted.answers_with()
    with Client(scripted.url, cache_dir=tmp_path) as client:
        assert client.capabilities() == {}
    monkeypatch.setenv("HTTP_PROXY", "HTTPS://127.0.0.1:1")
    with Client(scripted.url, cache_dir=tmp_path) as client, pytest.raises(RequestError, match="certificates"):
        client.capabilities()
    assert len(scripted.received) == 1


@pytest.mark.usefixtures("embedding")
def test_an_embedded_service_needs_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value, _ in BROKEN[1:5]:
        monkeypatch.setenv(variable, value)
    with Client("", cache_dir=tmp_path) as client:
        assert client.capabilities()["targets"]


@pytest.mark.parametrize(("variable", "value", "why"), BROKEN[:5])
def test_the_doctor_has_a_line_for_it(doctor: Doctor, variable: str, value: str, why: str) -> None:
    status, parts = doctor(KILN_URL="http://127.0.0.1:1", **{variable: value})
    assert (status, parts["environment"]["status"]) == (1, "fail")
    assert variable in parts["environment"]["found"]
    assert why in parts["environment"]["found"]
    assert "secret" not in json.dumps(parts["environment"])


def test_a_command_says_it_in_a_line(kiln: Kiln, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text("{}")
    done = one_line(kiln("compile", "graph.json", "--url", "http://127.0.0.1:1", ALL_PROXY="socks5://host:1"), 2)
    said = "error[request.invalid]: No connection can be made with the environment variables ALL_PROXY"
    assert done.startswith(said)
