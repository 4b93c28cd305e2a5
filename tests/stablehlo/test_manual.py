"""The manual's page about StableHLO: its table is that of the code, and its command compiles."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from stablehlo.manual import support_table
from stablehlo.translate import translate
from tests.service.server import Server
from tests.snippets import ROOT, blocks

PAGE = ROOT / "docs" / "stablehlo.md"
SERVED = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("manual") / "home") as server:
        yield server


def test_the_table_is_that_of_the_code() -> None:
    listed = re.search(r"<!-- support -->\n(.*?)\n<!-- /support -->", PAGE.read_text("utf-8"), re.DOTALL)
    assert listed is not None
    assert listed[1] == support_table()


def test_the_command_compiles(server: Server) -> None:
    (block,) = blocks(PAGE, "sh")
    words = shlex.split(block.text)
    assert words[:2] == ["curl", f"{SERVED}/compile"]
    body = json.loads(words[words.index("-d") + 1])
    dims = {name: (bounds["min"], bounds["max"]) for name, bounds in body["dims"].items()}
    assert translate(body["stablehlo"]["text"], dims).document["symbolic_vars"]
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    command = [word.replace(SERVED, server.url) for word in words]
    done = subprocess.run(
        [*command, "--silent", "--write-out", "\n%{http_code}"], capture_output=True, text=True, timeout=120, check=True
    )
    answer, _, status = done.stdout.rpartition("\n")
    assert status == "200", answer
    (program,) = json.loads(answer)["programs"]
    assert program["inputs"][0]["shape"] == ["d0_0", 64]
    assert program["symbols"] == [{"name": "d0_0", "min_val": 1, "max_val": 4096}]
