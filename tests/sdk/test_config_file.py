"""The settings of a user: a file, variables and arguments, of which the last wins, and who gives a key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import Client, Graph, Program
from tensorkiln.config_file import Variables
from tensorkiln.errors import RequestError
from tensorkiln.settings import MAX_TIMEOUT_S, TIMEOUT_S, resolve_settings
from tensorkiln.trust.policy import resolve_policy
from tests.sdk.conftest import Connect, Kiln
from tests.sdk.scripted import ScriptedServer
from tests.snippets import ROOT, blocks

Write = Callable[..., dict[str, str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the file; gives the environment that names its directory."""

    def write(text: str, mode: int = 0o600) -> dict[str, str]:
        (tmp_path / "config").mkdir(exist_ok=True)
        path = tmp_path / "config" / "config.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return {"KILN_CONFIG_DIR": str(path.parent)}

    return write


def test_an_argument_wins_over_a_variable_which_wins_over_the_file(write: Write) -> None:
    environment = write('url = "http://file:1/"\ntimeout_s = 7.5\nstartup_timeout_s = 9\nhome = "/file"')
    settings = resolve_settings(environment=environment)
    assert (settings.url, settings.timeout_s, settings.startup_timeout_s) == ("http://file:1", 7.5, 9.0)
    assert settings.home == Path("/file")
    environment |= {"KILN_URL": "http://variable:1", "KILN_TIMEOUT_S": "8", "KILN_HOME": "/variable"}
    settings = resolve_settings(environment=environment)
    assert (settings.url, settings.timeout_s, settings.startup_timeout_s) == ("http://variable:1", 8.0, 9.0)
    settings = resolve_settings("http://argument:1/", timeout_s=3, cache_dir="/argument", environment=environment)
    assert (settings.url, settings.timeout_s, settings.home) == ("http://argument:1", 3.0, Path("/argument"))


def test_a_variable_that_is_set_to_nothing_hides_the_file(write: Write) -> None:
    environment = write('url = "http://file:1"\ntimeout_s = 7') | {"KILN_URL": "", "KILN_TIMEOUT_S": ""}
    settings = resolve_settings(environment=environment)
    assert (settings.url, settings.timeout_s) == (None, TIMEOUT_S)


def test_requirements_on_programs_may_be_in_the_file(write: Write, tmp_path: Path) -> None:
    key = "A" * 43
    environment = write(
        f'trusted_keys = ["{key}"]\nmin_isolation = "external"\noffline = true\ncache_mib = 5\ncache_dir = "/kept"'
    )
    policy = resolve_policy(tmp_path, environment=environment)
    assert [pin.x for pin in policy.pins] == [key]
    assert (policy.minimum_isolation, policy.offline, policy.cache_bytes) == ("external", True, 5 << 20)
    assert (policy.cache, policy.config) == (Path("/kept"), tmp_path / "config")
    assert not resolve_policy(tmp_path, environment=environment | {"KILN_OFFLINE": "0"}).offline


def test_a_client_with_an_empty_list_of_keys_believes_nobody(write: Write, tmp_path: Path) -> None:
    write("trusted_keys = []")
    with pytest.raises(RequestError, match=r"trusted_keys in .* is .*: name a key"):
        Client("http://127.0.0.1:1", cache_dir=tmp_path)
    with pytest.raises(RequestError, match=r"trusted_keys in .* is .*: name a key"):
        Program.from_bundle(tmp_path / "program.kiln")


def test_the_key_of_the_file_is_for_the_url_of_the_file(write: Write) -> None:
    environment = write('url = "http://file:1"\napi_key = "kiln_secret"')
    assert resolve_settings(environment=environment).api_key == "kiln_secret"
    assert resolve_settings("http://file:1/", environment=environment).api_key == "kiln_secret"
    for url in ("http://other:1", "https://file:1", ""):
        assert resolve_settings(url, environment=environment).api_key is None
    assert resolve_settings(environment=environment | {"KILN_URL": "http://other:1"}).api_key is None
    named = resolve_settings("http://other:1", api_key="kiln_mine", environment=environment)
    assert named.api_key == "kiln_mine"
    assert resolve_settings("http://o:1", environment=environment | {"KILN_API_KEY": "kiln_v"}).api_key == "kiln_v"
    assert "kiln_secret" not in repr(resolve_settings(environment=environment))


def test_a_client_sends_the_key_of_the_file(write: Write, scripted: ScriptedServer, tmp_path: Path) -> None:
    # Its directory is the one that the tests of the SDK have.
    write(f'url = "{scripted.url}"\napi_key = "kiln_secret"')
    scripted.answers_with(b"{}")
    with Client(cache_dir=tmp_path) as client:
        client.capabilities()
    assert scripted.received[0].headers["authorization"] == "Bearer kiln_secret"


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


@pytest.mark.skipif(os.name != "posix", reason="file modes")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused_and_not_shown(write: Write, mode: int) -> None:
    environment = write('url = "http://file:1"\napi_key = "kiln_secret"', mode)
    with pytest.raises(RequestError, match=r"chmod 600 .*config\.toml") as refused:
        resolve_settings(environment=environment)
    assert "kiln_secret" not in str(refused.value)
    assert resolve_settings(environment=write('url = "http://file:1"', mode)).url == "http://file:1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url = ", "is not TOML"),
        ('adress = "x"', "'adress'; the keys are api_key, cache_dir"),
        ("url = 1", "url in .* is 1: write a string"),
        ("timeout_s = true", "timeout_s in .*: write a whole number or a number"),
        ('offline = "yes"', "write true or false"),
        ("trusted_keys = [1]", "an array of strings"),
        ("trusted_keys = []", r"trusted_keys in .*config\.toml is \[\]: name a key, or leave it out"),
        ('trusted_keys = [""]', r"trusted_keys in .* is \[''\]: name a key"),
        ('trusted_keys = ["", " "]', "trusted_keys in .*: name a key"),
        ('trusted_keys = ""', "trusted_keys in .* is '': name a key"),
        ('trusted_keys = " "', "trusted_keys in .* is ' ': name a key"),
        ('trusted_keys = ","', "trusted_keys in .* is ',': name a key"),
        ('home = "~no-such-user/x"', r"home in .*config\.toml is '~no-such-user/x'"),
        ('cache_dir = "~no-such-user/x"', r"cache_dir in .*config\.toml is '~no-such-user/x'"),
        ('home = "a\\u0000b"', r"home in .*config\.toml is "),
        ("timeout_s = 1e10", r"timeout_s in .*config\.toml is '10000000000\.0'"),
        ('url = "http://a..b"', "service's URL is 'http://a..b'"),
        ("timeout_s = 0", r"timeout_s in .*config\.toml is '0': give a number of seconds"),
        ("cache_mib = -1", r"cache_mib in .*config\.toml is '-1'"),
        ("[service]", "'service'"),
        ('api_key = "kiln_secret"', "no url"),
    ],
)
def test_an_unusable_file_is_named_with_the_key(write: Write, tmp_path: Path, text: str, message: str) -> None:
    environment = write(text)
    with pytest.raises(RequestError, match=message):
        resolve_policy(resolve_settings(environment=environment).home, environment=environment)


@pytest.mark.parametrize("value", ['["kiln_secret"]', '{ key = "kiln_secret" }', "515051505150"])
def test_the_api_key_is_never_shown(write: Write, value: str) -> None:
    environment = write(f'url = "http://file:1"\napi_key = {value}')
    with pytest.raises(RequestError, match="not shown here: write a string") as caught:
        resolve_settings(environment=environment)
    assert not any(secret in repr(caught.value.to_problem()) for secret in ("kiln_secret", "515051505150"))


def test_no_file_is_no_error_and_one_that_cannot_be_read_is(tmp_path: Path) -> None:
    assert Variables.of({"KILN_CONFIG_DIR": str(tmp_path / "none")}).file == {}
    assert Variables.of({"XDG_CONFIG_HOME": str(tmp_path)}).path == tmp_path / "kiln" / "config.toml"
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(RequestError, match="cannot be read"):
        Variables.of({"KILN_CONFIG_DIR": str(tmp_path)})


def test_the_file_of_the_manual_can_be_used(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "docs" / "sdk.md", "toml")
    variables = Variables.of(write(block.text))
    assert variables.get("KILN_MIN_ISOLATION") == "landlock+seccomp"
    assert variables.get("KILN_TRUSTED_KEYS") == "~/.config/kiln/keys.json"
    settings = resolve_settings(environment=write(block.text.replace("kiln_…", "kiln_x")))
    assert (settings.url, settings.api_key, settings.timeout_s) == ("https://kiln.example:8443", "kiln_x", 300.0)


def test_an_empty_url_asks_for_an_embedded_service_as_no_url_does_and_files_lie_in_the_users_cache() -> None:
    assert resolve_settings("", environment={"KILN_URL": "http://elsewhere:1"}).url is None
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
        *("me:secret@host", "http:me:secret@host", "http:/me:secret@host", "http://me:sec/secret@host"),
        "ftp://secret@h",
    ],
)
def test_a_user_in_a_url_is_refused(url: str, kiln: Kiln, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*urls: str) -> None:
        with pytest.raises(RequestError, match="service's URL") as error:
            Client(*urls, cache_dir=tmp_path, api_key="key" if urls else None)
        assert "secret" not in str(error.value)

    refuse(url)
    monkeypatch.setenv("KILN_URL", url)
    refuse()
    monkeypatch.delenv("KILN_URL")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'url = "{url}"')
    refuse()
    said = kiln("doctor", "--url", url)
    assert said.returncode == 1
    assert "service's URL" in said.stdout
    assert "secret" not in said.stdout + said.stderr


@pytest.mark.parametrize(
    "url",
    [
        *("http://[::1]:80", "http://host/@kiln", "https://host.", "http://a_b:1/kiln", "http://ex\xe4mple.de"),
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
def test_a_missing_home_is_refused_by_its_variable(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "~no-such-user/x")
    with pytest.raises(RequestError, match=f"{variable} is '~no-such-user/x': .*; give an absolute path"):
        Client("http://127.0.0.1:1")


@pytest.mark.parametrize("place", ["~no-such-user/x", "a\0b"])
def test_a_directory_that_cannot_be_is_refused_by_its_argument(place: str) -> None:
    with pytest.raises(RequestError, match="cache_dir is "):
        Client("http://127.0.0.1:1", cache_dir=place)
    with pytest.raises(RequestError, match="cache_dir is "):
        resolve_policy(Path("/home"), cache_dir=place)


NOWHERE = """
import json, os, sys
import httpx2
from tensorkiln.errors import RequestError
from tensorkiln.sdk.client import Client
for name in [name for name in os.environ if name == "HOME" or name.startswith(("KILN_", "XDG_"))]:
    del os.environ[name]
os.setuid(54321)
for variables in json.loads(sys.argv[1]):
    if os.fork() == 0:
        os.environ.update(variables)
        try:
            print(Client("http://127.0.0.1:1").offline, flush=True)
        except RequestError as error:
            print(error.message, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="becomes another user")
def test_a_user_without_a_home_is_told_what_to_set() -> None:
    config, home = {"KILN_CONFIG_DIR": "/nowhere"}, {"KILN_HOME": "/nowhere"}
    cases = [{}, config, config | home, {"XDG_CONFIG_HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere"}]
    done = subprocess.run([sys.executable, "-c", NOWHERE, json.dumps(cases)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    without_anything, without_home, *others = done.stdout.splitlines()
    assert "set HOME or KILN_CONFIG_DIR" in without_anything
    assert "set HOME or KILN_HOME" in without_home
    assert others == ["False", "False"]
