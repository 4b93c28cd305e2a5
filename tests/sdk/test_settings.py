from __future__ import annotations

from pathlib import Path

import pytest

from tensorkiln.errors import RequestError
from tensorkiln.settings import resolve_settings


def test_an_argument_wins_over_the_environment() -> None:
    environment = {"KILN_URL": "http://elsewhere:1", "KILN_TIMEOUT_S": "7", "KILN_HOME": "/var/kiln"}
    settings = resolve_settings("http://here:2/", timeout_s=3, cache_dir="/srv/kiln", environment=environment)
    assert (settings.url, settings.timeout_s, settings.home) == ("http://here:2", 3.0, Path("/srv/kiln"))


def test_the_environment_wins_over_the_defaults() -> None:
    environment = {"KILN_URL": "https://here/kiln", "KILN_TIMEOUT_S": "7", "KILN_HOME": "/var/kiln"}
    settings = resolve_settings(environment=environment)
    assert (settings.url, settings.timeout_s, settings.home) == ("https://here/kiln", 7.0, Path("/var/kiln"))


def test_an_empty_url_asks_for_an_embedded_service_whatever_the_environment_says() -> None:
    assert resolve_settings("", environment={"KILN_URL": "http://elsewhere:1"}).url is None


def test_without_anything_the_service_is_embedded_and_files_lie_in_the_users_cache() -> None:
    settings = resolve_settings(environment={})
    assert settings.url is None
    assert settings.home == Path.home() / ".cache" / "kiln"
    assert resolve_settings(environment={"XDG_CACHE_HOME": "/xdg"}).home == Path("/xdg/kiln")


@pytest.mark.parametrize("url", ["ftp://host", "host:8080", "http://", "/tmp/socket", "http://host?x=1"])
def test_a_url_that_names_no_http_service_is_refused(url: str) -> None:
    with pytest.raises(RequestError, match="service's URL"):
        resolve_settings(url, environment={})


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_that_is_not_a_positive_number_is_refused_by_its_variable(seconds: str) -> None:
    with pytest.raises(RequestError, match="KILN_TIMEOUT_S"):
        resolve_settings(environment={"KILN_TIMEOUT_S": seconds})
