"""A setting that is misspelt is told: it changes nothing, and nobody would notice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service.settings import misspelt
from tests.service.server import Server
from tests.snippets import ROOT

SOURCES = ("client", "service", "docs", "docker", "tests")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("KILN_QUEU", "KILN_QUEUE"),
        ("KILN_CONCURENCY", "KILN_CONCURRENCY"),
        ("KILN_COMPILE_DEADLINE", "KILN_COMPILE_DEADLINE_S"),
        ("kiln_stores", "KILN_STORE"),
        ("KILN_URLS", "KILN_URL"),
    ],
)
def test_the_nearest_setting_is_named(name: str, meant: str) -> None:
    assert misspelt({name: "5", "PATH": "", "KILN_QUEUE": "7"}) == {name: meant}


def test_what_others_set_is_not_theirs_to_be_told() -> None:
    cluster = ("KILN_SERVICE_HOST", "KILN_SERVICE_PORT", "KILN_PORT", "KILN_PORT_8080_TCP_ADDR", "kiln_queue")
    assert misspelt(dict.fromkeys(cluster, "")) == {}


def test_no_variable_that_is_used_anywhere_here_is_called_misspelt() -> None:
    files = [
        path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".yaml")
    ]
    assert len(files) > 500
    used = {
        name
        for path in files
        if path != Path(__file__)
        for name in re.findall(r"\bKILN_\w*[A-Z]\b", path.read_text("utf-8"))
    }
    assert "KILN_QUEUE" in used
    # The page on the settings shows what is said of one.
    assert misspelt(dict.fromkeys(used, "")).keys() <= {"KILN_QUEU"}


def test_a_service_says_so_when_it_starts_and_shows_no_value(tmp_path: Path) -> None:
    with Server(tmp_path / "home", queu="hidden", queue=5) as server:
        assert server.log().count("KILN_QUEU is no setting; is KILN_QUEUE meant?") == 1
        assert "hidden" not in server.log()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    listed = subprocess.run(
        [sys.executable, "-W", "error", "-m", "service.trust", "list"],
        env={**clean, "KILN_HOME": str(tmp_path / "other"), "KILN_QUEU": "5"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (listed.returncode, "KILN_QUEU" in listed.stdout) == (0, False)
