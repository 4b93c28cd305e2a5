from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorkiln import Client, Graph
from tensorkiln.errors import RequestError
from tensorkiln.settings import MAX_TIMEOUT_S, resolve_settings
from tensorkiln.trust.policy import resolve_policy
from tests.sdk.conftest import Kiln, one_line


def test_an_empty_url_asks_for_an_embedded_service_whatever_the_environment_says() -> None:
    assert resolve_settings("", environment={"KILN_URL": "http://elsewhere:1"}).url is None


def test_without_anything_the_service_is_embedded_and_files_lie_in_the_users_cache() -> None:
    settings = resolve_settings(environment={})
    assert settings.url is None
    assert settings.home == Path.home() / ".cache" / "kiln"
    assert resolve_settings(environment={"XDG_CACHE_HOME": "/xdg"}).home == Path("/xdg/kiln")


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://host", "host:8080", "http://", "/tmp/socket", "http://host?x=1"),
        *("http://[::1", "http://[zz]", "http://host:abc", "http://host:70000", "http://:80", "http://256.1.1.1"),
        *("http://a..b", "http://.", f"http://{'a' * 70}", f"http://\xe9{'a' * 63}", "http://ho\nst"),
        "http://h/\ud800",
    ],
)
def test_a_url_that_names_no_http_service_is_refused_when_the_client_is_made(url: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"service's URL is .*: (write it like http://host:8080|leave out the q)"):
        Client(url, cache_dir=tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        *("http://me:secret@host", "https://secret@host:1/kiln", "http://@host", "http://me:secret@[::1"),
        *(
            "me:secret@host",
            "http:me:secret@host",
            "http:/me:secret@host",
            "http://me:sec/secret@host",
            "ftp://secret@h",
        ),
    ],
)
def test_a_user_in_a_url_is_refused_wherever_it_is_stated_and_not_shown(
    url: str, kiln: Kiln, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        with pytest.raises(RequestError, match="service's URL") as error:
            Client(cache_dir=tmp_path)
        assert "secret" not in str(error.value)

    with pytest.raises(RequestError, match="service's URL") as error:
        Client(url, cache_dir=tmp_path, api_key="key")
    assert "secret" not in str(error.value)
    monkeypatch.setenv("KILN_URL", url)
    refused()
    monkeypatch.delenv("KILN_URL")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'url = "{url}"')
    refused()
    said = kiln("doctor", "--url", url)
    assert said.returncode == 1
    assert "service's URL" in said.stdout
    assert "secret" not in said.stdout + said.stderr


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1]:80",
        "http://host/@kiln",
        "https://host.",
        "http://a_b:1/kiln",
        "http://ex\xe4mple.de",
        "http://h:0",
    ],
)
def test_a_url_that_can_be_is_taken_as_it_is(url: str) -> None:
    assert resolve_settings(url, environment={}).url == url


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan", "inf", "1e10", "1e308", "2000001"])
@pytest.mark.parametrize("variable", ["KILN_TIMEOUT_S", "KILN_STARTUP_TIMEOUT_S"])
def test_a_time_that_is_no_number_in_the_bounds_is_refused_by_its_variable(variable: str, seconds: str) -> None:
    with pytest.raises(RequestError, match=f"{variable} is '{seconds}': give a number of seconds above 0, and at most"):
        resolve_settings(environment={variable: seconds})


@pytest.mark.parametrize("seconds", [1e10, 1e308, 10**400], ids=["1e10", "1e308", "10**400"])
def test_a_time_beyond_the_bound_is_refused_by_its_argument(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"timeout_s is (1e\+|inf)"):
        Client("http://127.0.0.1:1", timeout_s=seconds, cache_dir=tmp_path)


def test_the_longest_time_is_one_that_a_request_can_be_sent_with(served: str, layer: Graph, tmp_path: Path) -> None:
    with Client(served, timeout_s=MAX_TIMEOUT_S, cache_dir=tmp_path) as client:
        assert client.validate(layer)["valid"]


@pytest.mark.parametrize("variable", ["KILN_HOME", "KILN_CONFIG_DIR", "KILN_CACHE_DIR", "KILN_TRUSTED_KEYS"])
def test_the_home_of_somebody_who_is_not_there_is_refused_by_its_variable(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "~no-such-user/x")
    with pytest.raises(RequestError, match=f"{variable} is '~no-such-user/x': .*; give an absolute path"):
        Client("http://127.0.0.1:1")


@pytest.mark.parametrize("place", ["~no-such-user/x", "a\0b"])
def test_a_directory_that_cannot_be_is_refused_by_its_argument(place: str) -> None:
    with pytest.raises(RequestError, match="cache_dir is "):
        Client("http://127.0.0.1:1", cache_dir=place)
    with pytest.raises(RequestError, match="cache_dir is "):
        resolve_policy(Path("/home"), cache_dir=place)


@pytest.mark.parametrize(
    "options",
    [("--url", "http://[::1"), ("--url", "http://host:abc"), ("--url", "http://a..b"), ("--timeout", "1e308")],
    ids=lambda options: options[1],
)
def test_a_command_refuses_a_setting_in_one_line(kiln: Kiln, graph_file: Path, options: tuple[str, str]) -> None:
    refused = one_line(kiln("validate", graph_file.name, *options), 2)
    assert refused.startswith("error[request.")


NOWHERE = """
import os, sys
# What the client loads when it needs it, the other user may not read.
import httpx2
from tensorkiln.errors import RequestError
from tensorkiln.sdk.client import Client
os.environ.pop("HOME", None)
os.setuid(54321)
try:
    print(Client("http://127.0.0.1:1").offline)
except RequestError as error:
    print(error.message)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="becomes another user")
def test_a_user_without_a_home_is_told_what_to_set() -> None:
    def said(**variables: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KILN_", "XDG_"))}
        done = subprocess.run(
            [sys.executable, "-c", NOWHERE], env={**environment, **variables}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert "set HOME or KILN_CONFIG_DIR" in said()
    assert "set HOME or KILN_HOME" in said(KILN_CONFIG_DIR="/nowhere")
    assert said(KILN_CONFIG_DIR="/nowhere", KILN_HOME="/nowhere") == "False"
    assert said(XDG_CONFIG_HOME="/nowhere", XDG_CACHE_HOME="/nowhere") == "False"
