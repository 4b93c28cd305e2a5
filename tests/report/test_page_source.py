"""The page that is checked in was built from the source that is, and keeps what others' licences ask for."""

from __future__ import annotations

import hashlib
import json
import re
from typing import get_args

from passes.cpu import machine as cpu
from passes.gpu import machine as gpu
from tensorkiln.schedule import BarrierReason
from tensorkiln.schedule.hints import ScalarReason
from tests.snippets import ROOT

SOURCE = ROOT / "client" / "report"
PAGE = (ROOT / "client" / "tensorkiln" / "report" / "page.html").read_text("utf-8")


def test_the_page_was_built_from_its_source() -> None:
    files = ("index.html", "notices.ts", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts")
    digest = hashlib.sha256()
    for name in (*files, *sorted(f"src/{path.name}" for path in (SOURCE / "src").iterdir())):
        digest.update(name.encode() + b"\0" + (SOURCE / name).read_bytes() + b"\0")
    stated = re.search(r'<meta name="source" content="([0-9a-f]{64})"', PAGE)
    assert stated is not None
    assert stated[1] == digest.hexdigest(), "run `make report-page`"


def test_the_page_loads_nothing_from_elsewhere() -> None:
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"', PAGE) == []


def test_the_page_has_the_licences_of_what_is_in_it() -> None:
    needed = json.loads((SOURCE / "package.json").read_text())["dependencies"]
    (notices,) = re.findall(r'<script type="text/plain" id="notices">(.*?)</script>', PAGE, re.S)
    for name, version in needed.items():
        assert f"{name} {version} (" in notices
    assert notices.count("WITHOUT WARRANTY OF ANY KIND") >= len(needed) - 1


def test_the_lock_names_no_registry() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []


def test_the_page_has_a_sentence_for_every_reason_of_the_compiler() -> None:
    remarks = (SOURCE / "src" / "remarks.ts").read_text()
    for name, reasons in (("BARRIERS", get_args(BarrierReason)), ("SCALAR", get_args(ScalarReason))):
        (table,) = re.findall(rf"const {name}: .*?\n(.*?)\n}};", remarks, re.S)
        assert sorted(re.findall(r'^  "?([a-z-]+)"?: ', table, re.M)) == sorted(reasons)


def test_the_page_knows_machines_as_the_compiler_does() -> None:
    known = json.loads((SOURCE / "src" / "machines.json").read_text())
    assert known["launch_ns"] == {"cpu": cpu.LAUNCH_NS, "cuda": gpu.LAUNCH_NS}
    fields = ("gigahertz", "products", "streamed_rate", "cached_bytes", "cached_rate")

    def core(machine: cpu.Core) -> dict[str, float]:
        return {name: getattr(machine, name) for name in fields}

    assert known["core"] == core(cpu.Core())
    assert {name: {**known["core"], **own} for name, own in known["cores"].items()} == {
        name: core(machine) for name, machine in cpu.CORES.items()
    }
    assert known["devices"] == {
        name: {field: getattr(device, field) for field in ("multiprocessors", "lanes", "gigahertz", "rate")}
        for name, device in gpu.DEVICES.items()
    }
