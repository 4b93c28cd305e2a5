"""The settings of a user: a file, variables and arguments, of which the last wins, and who gives a key."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import Client, Program
from tensorkiln.config_file import Variables
from tensorkiln.errors import RequestError
from tensorkiln.settings import TIMEOUT_S, resolve_settings
from tensorkiln.trust.policy import resolve_policy
from tests.sdk.conftest import Connect
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


def test_what_is_demanded_of_programs_may_stand_in_the_file(write: Write, tmp_path: Path) -> None:
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


def test_a_key_without_its_service_is_refused(write: Write) -> None:
    with pytest.raises(RequestError, match="no url"):
        resolve_settings(environment=write('api_key = "kiln_secret"'))


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
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_key(
    write: Write, tmp_path: Path, text: str, message: str
) -> None:
    environment = write(text)
    with pytest.raises(RequestError, match=message):
        resolve_policy(resolve_settings(environment=environment).home, environment=environment)


@pytest.mark.parametrize("value", ['["kiln_secret"]', '{ key = "kiln_secret" }', "515051505150"])
def test_what_stands_for_the_key_is_never_shown(write: Write, value: str) -> None:
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
