"""`kiln doctor` says what is wrong with a real machine and a real service, and ends with 1 when something is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from service.identity.caller import Scope
from tensorkiln import Client, Graph
from tensorkiln.doctor.packages import DISTRIBUTION, SERVER
from tensorkiln.spec.abi import ABI_VERSION
from tests.identity.guarded import Guarded
from tests.sdk.conftest import Kiln, succeeded
from tests.sdk.scripted import ScriptedServer
from tests.service.server import Server
from tests.trust.forgery import Proxy

PARTS = {"python", "packages", "cpu", "gpu", "nvjitlink", "ptxas", "cache", "service", "isolation", "readiness"}
LAST = {"clock", "credential", "signing keys"}

Doctor: TypeAlias = Callable[..., "tuple[int, dict[str, dict[str, str]]]"]
"""Runs the command with variables of the environment: its exit status, and the worst finding of each part."""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KILN_CACHE_DIR", raising=False)


@pytest.fixture
def doctor(kiln: Kiln) -> Doctor:
    def run(**variables: str) -> tuple[int, dict[str, dict[str, str]]]:
        done = kiln("doctor", "--json", url="", **variables)
        assert done.stderr == "", done.stderr
        answer = json.loads(done.stdout)
        statuses = ("ok", "warn", "fail")
        counted = [sum(finding["status"] == status for finding in answer["findings"]) for status in statuses]
        assert counted == [answer[status] for status in statuses]
        return done.returncode, {
            finding["part"]: finding
            for finding in sorted(answer["findings"], key=lambda finding: statuses.index(finding["status"]))
        }

    return run


def test_a_sound_installation_passes_every_check(kiln: Kiln) -> None:
    done = succeeded(kiln("doctor", url="", COLUMNS="240"))
    named = {line.split("│")[1].strip() for line in done.splitlines() if line.startswith("│")}
    assert named >= PARTS | LAST
    assert named >= {DISTRIBUTION, f"{DISTRIBUTION}[cpu]", f"{DISTRIBUTION}[onnx]"}
    assert "0 fail" in done.splitlines()[-1]
    assert "embedded: build" in done


@pytest.mark.parametrize(
    ("url", "part", "said"),
    [
        ("http://127.0.0.1:1", "service", "KILN_URL, which is http://127.0.0.1:1"),
        ("host:8080", "settings", "host:8080"),
    ],
)
def test_a_service_that_is_not_there_is_a_failure_with_advice(doctor: Doctor, url: str, part: str, said: str) -> None:
    status, parts = doctor(KILN_URL=url)
    assert (status, parts[part]["status"]) == (1, "fail")
    assert said in parts[part]["found"] + parts[part]["advice"]
    assert not parts.keys() & LAST


def test_credentials_scopes_and_isolation_are_checked(doctor: Doctor, guarded: Guarded) -> None:
    status, parts = doctor(KILN_URL=guarded.url)
    assert (status, parts["credential"]["status"]) == (1, "fail")
    assert "KILN_API_KEY" in parts["credential"]["advice"]
    status, parts = doctor(KILN_URL=guarded.url, KILN_API_KEY=guarded.key("acme", Scope.CACHE_READ))
    assert (status, parts["credential"]["status"]) == (0, "warn")
    assert "compile" in parts["credential"]["advice"]
    key = guarded.key("acme")
    status, parts = doctor(KILN_URL=guarded.url, KILN_API_KEY=key, KILN_MIN_ISOLATION="external")
    assert (status, parts["isolation"]["status"]) == (1, "fail")
    status, parts = doctor(KILN_URL=guarded.url, KILN_API_KEY=key)
    assert (status, parts["credential"]["status"]) == (0, "ok")
    assert "of acme, with cache:read, cache:write, compile" in parts["credential"]["found"]
    assert key not in json.dumps(parts)


def test_a_service_that_is_not_ready_is_told_with_its_check(doctor: Doctor, tmp_path: Path) -> None:
    with Server(tmp_path / "served", disk_floor_mib=1 << 40) as server:
        status, parts = doctor(KILN_URL=server.url)
    assert (status, parts["readiness"]["status"]) == (1, "fail")
    assert "disk: " in parts["readiness"]["found"]


def test_directories_that_cannot_be_written_are_told(doctor: Doctor, guarded: Guarded, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    beside = str(tmp_path / "file" / "below")
    key = guarded.key("acme")
    status, parts = doctor(KILN_URL=guarded.url, KILN_API_KEY=key, KILN_CACHE_DIR=beside)
    assert (status, parts["cache"]["status"]) == (0, "warn")
    status, parts = doctor(KILN_URL=guarded.url, KILN_API_KEY=key, KILN_CONFIG_DIR=beside)
    assert (status, parts["trusted keys"]["status"]) == (1, "fail")


def test_a_damaged_file_of_the_cache_is_found(
    doctor: Doctor, guarded: Guarded, tmp_path: Path, layer: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, key = tmp_path / "cache", guarded.key("acme")
    monkeypatch.setenv("KILN_CONFIG_DIR", str(tmp_path / "config"))
    with Client(guarded.url, api_key=key, cache_dir=cache) as client:
        client.compile(layer, "cpu:native")
    variables = {"KILN_URL": guarded.url, "KILN_API_KEY": key, "KILN_CACHE_DIR": str(cache)}
    _, parts = doctor(**variables)
    assert parts["cache"]["status"] == "ok"
    assert not parts["cache"]["found"].endswith(" 0 files in it are whole")
    assert "known from an earlier use" in parts["signing keys"]["found"]
    (cache / "artifacts" / ("0" * 64)).write_bytes(b"not that")
    _, parts = doctor(**variables)
    assert parts["cache"]["status"] == "warn"
    assert "1 of " in parts["cache"]["found"]
    (cache / "artifacts" / ("0" * 64)).unlink()
    records = sorted((cache / "records").iterdir())
    kinds = [path.read_bytes().startswith(b"{") for path in records]
    assert sorted(kinds) == [False, True]  # what the question came to, and the record of that
    for path in records:
        path.write_bytes(path.read_bytes()[:-1])
    _, parts = doctor(**variables)
    assert parts["cache"]["status"] == "warn"
    assert parts["cache"]["found"].startswith("2 of ")
    assert str(cache / "records") in parts["cache"]["advice"]
    # Another service under the same name.
    (known,) = (tmp_path / "config" / "services").iterdir()
    known.write_text((tmp_path / "config" / "services" / known.name).read_text().replace('"keys":', '"none":'))
    status, parts = doctor(**variables)
    assert (status, parts["signing keys"]["status"]) == (1, "fail")
    assert "damaged" in parts["signing keys"]["found"]


def test_a_key_that_nobody_vouches_for_is_a_failure(doctor: Doctor, guarded: Guarded, tmp_path: Path) -> None:
    variables = {"KILN_URL": guarded.url, "KILN_API_KEY": guarded.key("acme")}
    _, parts = doctor(**variables)
    assert "will be trusted" in parts["signing keys"]["found"]
    published = guarded.send(guarded.key("acme"), "GET", "/keys").json()["keys"]
    status, parts = doctor(**variables, KILN_TRUSTED_KEYS=published[0]["x"])
    assert (status, parts["signing keys"]["status"]) == (0, "ok")
    status, parts = doctor(**variables, KILN_TRUSTED_KEYS="A" * 43)
    assert (status, parts["signing keys"]["status"]) == (1, "fail")
    assert list((tmp_path / "config").rglob("*.json")) == []  # looking is not trusting


@pytest.mark.parametrize(
    ("seconds", "status", "word"), [(0, "ok", "agrees"), (30, "warn", "behind"), (-300, "fail", "ahead of")]
)
def test_clocks_that_differ_are_told(doctor: Doctor, served: str, seconds: float, status: str, word: str) -> None:
    with Proxy(served, ahead_s=seconds) as passing:
        code, parts = doctor(KILN_URL=passing.url)
    assert code == (1 if status == "fail" else 0)
    assert parts["clock"]["status"] == status
    assert word in parts["clock"]["found"]


def test_another_kind_of_server_is_no_service(doctor: Doctor, scripted: ScriptedServer) -> None:
    scripted.answers_with()
    status, parts = doctor(KILN_URL=scripted.url)
    assert (status, parts["service"]["status"]) == (1, "fail")
    assert "not a tensorkiln service" in parts["service"]["advice"]


DESCRIBED = b'{"build_id": "0", "abi": %d, "isolation": {"level": "process"}}' % ABI_VERSION
HOSTILE: dict[str, tuple[bytes, int, dict[str, str]]] = {
    "deep": (b"[" * 100_000, 200, {}),
    "date": (DESCRIBED, 200, {"Date": "Thu, 01 Jan 99999999999999 00:00:00 GMT"}),
    "date of year 0": (DESCRIBED, 200, {"Date": "Thu, 01 Jan 0000 00:00:00 -0000"}),
    "half a character": (b'{"detail": "\\ud800"}', 400, {}),
    "half a level": (DESCRIBED.replace(b"process", b"\\ud800"), 200, {}),
    "escapes": (b'{"detail": "\\u001b[2J\\u202e"}', 400, {}),
    "numbers": (b'{"build_id": 1e999, "abi": [], "isolation": 7, "scopes": 3, "keys": {}}', 200, {}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_any_answer_of_a_server_is_a_finding(kiln: Kiln, scripted: ScriptedServer, name: str) -> None:
    body, status, headers = HOSTILE[name]
    scripted.answers_with(body, status=status, headers=headers)
    done = kiln("doctor", KILN_URL=scripted.url)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_packages_that_are_missing_or_old_are_told_by_what_needs_them(doctor: Doctor, tmp_path: Path) -> None:
    needs = {
        DISTRIBUTION: ["numpy>=999", "pydantic>=2", 'no-such-package; extra == "cpu"', 'rich; extra == "onnx"'],
        SERVER: ['another-missing>=3; sys_platform != "none"', 'never; sys_platform == "none"'],
    }
    site = tmp_path / "site"
    for name, requirements in needs.items():
        folder = site / f"{name.replace('-', '_')}-7.dist-info"
        folder.mkdir(parents=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 7", "Provides-Extra: cpu", "Provides-Extra: onnx"]
        (folder / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {text}" for text in requirements), ""]))
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    status, parts = doctor(PYTHONPATH=path, KILN_OFFLINE="1")
    assert status == 1
    assert parts[DISTRIBUTION]["status"] == "fail"
    assert "needs numpy>=999, and has 2" in parts[DISTRIBUTION]["found"]
    assert parts[f"{DISTRIBUTION}[cpu]"]["status"] == "warn"
    assert "no-such-package" in parts[f"{DISTRIBUTION}[cpu]"]["found"]
    assert parts[f"{DISTRIBUTION}[onnx]"]["status"] == "ok"
    assert parts[SERVER]["found"] == "needs another-missing>=3, and has none"
    assert "not asked" in parts["service"]["found"]
