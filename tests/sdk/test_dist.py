"""The folder that `kiln compile-all` writes to: its manifest says what lies there, whatever became of the last run."""

from __future__ import annotations

import json
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.sdk.conftest import NOWHERE, Kiln, complaint
from tests.sdk.test_compile_all import written_graphs
from tests.service.bodies import graph

V2, V3 = "cpu:x86-64-v2", "cpu:x86-64-v3"


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    written_graphs(tmp_path / "graphs", ["one", "deep/two"], 121)
    return tmp_path / "graphs"


def programs(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """The entries of the manifest, once each is true of the file that it names."""
    found = json.loads((tmp_path / "dist" / "manifest.json").read_text())["programs"]
    for targets in found.values():
        for entry in targets.values():
            content = (tmp_path / "dist" / entry["file"]).read_bytes()
            assert (entry["file_sha256"], entry["file_bytes"]) == (sha256(content).hexdigest(), len(content))
    return found


def test_a_failed_run_keeps_the_entries_of_existing_files(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    assert kiln_all("graphs", "-t", f"{V2},{V3}").returncode == 0
    before = programs(tmp_path)
    assert kiln_all("graphs", "-t", f"{V2},{V3}", url=NOWHERE).returncode == 3
    assert programs(tmp_path) == before

    (graphs / "one.json").write_text("no JSON")
    assert kiln_all("graphs", "-t", V2).returncode == 1
    assert programs(tmp_path) == before

    (tmp_path / "dist" / before["one"][V2]["file"]).unlink()
    (tmp_path / "dist" / before["one"][V3]["file"]).write_bytes(b"another")
    assert kiln_all("graphs", "-t", V2, url=NOWHERE).returncode == 3
    assert programs(tmp_path) == {"deep/two": before["deep/two"]}


def test_runs_for_one_target_each_share_a_folder_and_a_lock(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    def run(target: str, *more: str) -> int:
        return kiln_all("graphs", "-t", target, "--lock", "kiln.lock", *more).returncode

    def locked() -> dict[str, dict[str, Any]]:
        return json.loads((tmp_path / "kiln.lock").read_text())["graphs"]

    assert [run(target) for target in (V2, V3)] == [0, 0]
    assert [run(target, "--check") for target in (V2, V3)] == [0, 0]
    everything, before = locked(), programs(tmp_path)
    for each in (everything, before):
        assert {name: {*targets} for name, targets in each.items()} == {"one": {V2, V3}, "deep/two": {V2, V3}}
    (graphs / "one.json").unlink()
    assert (run(V2, "--check"), run(V2)) == (4, 0)
    assert locked() == {"deep/two": everything["deep/two"]}
    (graphs / "deep" / "two.json").write_text(json.dumps(graph("sqrt", rows=111)))
    assert run(V3) == 0
    after = programs(tmp_path)
    assert after.keys() == {"deep/two"}
    assert after["deep/two"][V2] == before["deep/two"][V2]
    assert after["deep/two"][V3]["digest"] != before["deep/two"][V3]["digest"]


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum")
def test_the_sums_can_be_checked_by_sha256sum(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    (graphs / "a\\b\nc.json").write_text(json.dumps(graph("sqrt", rows=112)))
    assert kiln_all("graphs", "-t", V2).returncode == 0
    verify = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    checked = subprocess.run(verify, cwd=tmp_path / "dist", capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    assert len((tmp_path / "dist" / "SHA256SUMS").read_text().splitlines()) == 3
    (tmp_path / "dist" / programs(tmp_path)["one"][V2]["file"]).write_bytes(b"another")
    assert subprocess.run(verify, cwd=tmp_path / "dist", capture_output=True).returncode == 1


def test_a_manifest_that_cannot_be_read_is_not_written_over(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "manifest.json").write_text('{"version": 7}')
    assert "dist/manifest.json is not a manifest" in complaint(kiln_all("graphs", "-t", V2), 2)
    assert (tmp_path / "dist" / "manifest.json").read_text() == '{"version": 7}'
