"""The command at a service that asks for keys."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from service.identity.caller import Scope
from tests.identity.guarded import Guarded
from tests.sdk.conftest import Kiln
from tests.sdk.test_compile_all import REPORTS, report, written_graphs


def test_a_key_that_is_refused_says_nothing_of_the_graphs(kiln_all: Kiln, guarded: Guarded, tmp_path: Path) -> None:
    written_graphs(tmp_path / "graphs", ["one"], 131)
    reader = guarded.key("acme", Scope.CACHE_READ)
    for variables, code in (
        ({}, "auth.missing"),
        ({"KILN_API_KEY": "kiln_no"}, "auth.invalid"),
        ({"KILN_API_KEY": reader}, "auth.forbidden"),
    ):
        refused = kiln_all("graphs", "-t", "cpu", *REPORTS, url=guarded.url, **variables)
        assert refused.returncode == 3, refused.stderr
        assert f"error[{code}]" in refused.stderr
        told = report(tmp_path)
        assert (told["exit_code"], told["totals"]["failed"]) == (3, 1)
        (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
        assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert kiln_all("graphs", "-t", "cpu", url=guarded.url, KILN_API_KEY=guarded.key("acme")).returncode == 0
