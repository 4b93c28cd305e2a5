"""The page on seeing the service says what is so."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from service.readiness.readiness import CHECKS
from tests.observe.figures import Figures
from tests.observe.test_log import lines, told_so_far
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.snippets import ROOT, blocks, run_commands, shown_commands

PAGE = ROOT / "docs" / "observability.md"
SERVE = "python -m tensorkiln_server --port 8080 &"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_every_command_of_the_page_prints_what_it_says(home: Path) -> None:
    shown = [each for each in shown_commands(PAGE) if each[0] != SERVE]
    with Server(home) as server:
        assert server.compile(encoded(compile_body())).status_code == 200
        run_commands(shown, os.environ, places={"http://127.0.0.1:8080": server.url, "service.log": str(home / "log")})


def test_the_line_of_the_page_is_that_of_a_request(server: Server) -> None:
    (block,) = blocks(PAGE, "json", "line")
    since = told_so_far(server)
    server.compile(encoded(compile_body(graph(rows=94))))
    (line,) = lines(server, 1, since, event="request")
    stated = json.loads(block.text)
    assert stated.keys() == line.keys()
    assert (stated["method"], stated["route"]) == (line["method"], line["route"])


def test_every_figure_is_on_the_page_with_its_labels(server: Server) -> None:
    rows = re.findall(r"^\| (`kiln_.*?) \| (.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    stated = {
        name: set(re.findall(r"`(\w+)`", named)) for names, named in rows for name in re.findall(r"`(\w+)`", names)
    }
    server.compile(encoded(compile_body()), "segfault")
    found: dict[str, set[str]] = {}
    for sample in Figures(server).samples:
        if sample.name.startswith("kiln_"):
            name = re.sub(r"_(bucket|count|sum)$", "", sample.name)
            found.setdefault(name, set()).update(sample.labels.keys() - {"le"})
    assert found == stated
    assert {name for name in stated if name.endswith("_total")} >= {
        f"{family.name}_total" for family in REGISTRY.collect() if family.type == "counter" and "kiln" in family.name
    }


def test_every_check_is_on_the_page() -> None:
    table = PAGE.read_text("utf-8").partition("| check | passes if |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == CHECKS
