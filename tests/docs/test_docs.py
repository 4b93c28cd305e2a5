"""The documents say what is so: every example runs, every link leads somewhere, every table agrees with the code."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import compile_limits, limits
from tensorkiln.build import Builder, conv2d, relu, softmax, var
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph, json_schema
from tensorkiln.nodes import NODE_KINDS
from tests.compiled import compiled
from tests.service.forked import forked_embedding
from tests.service.server import Server
from tests.snippets import ROOT, blocks, disagreement, run_python

README, CONTRACT, PASSES = ROOT / "README.md", ROOT / "docs" / "contract.md", ROOT / "docs" / "passes.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docker").glob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        ROOT / "client" / "README.md",
    ]
)
RUN_BY_OTHER_TESTS = {"tutorial.md", "sdk.md", "cli.md", "build.md", "onnx.md", "jax.md", "torch.md", "tinygrad.md"}

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SOURCE_PATH = re.compile(r"`((?:client|dialect|passes|service|tests|docs|docker)/[\w./-]*)`")
# One process runs what needs a service.
SERVES = pytest.mark.xdist_group("docs")
SERVED = "http://127.0.0.1:8080"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The fragments of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of somebody who tries out one page after the other: a process has one embedded service for it."""
    with forked_embedding():
        yield tmp_path_factory.mktemp("reader") / "home"


@SERVES
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in RUN_BY_OTHER_TESTS and blocks(page, "python")], ids=name_of
)
def test_every_python_block_runs(page: Path, reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KILN_URL", raising=False)
    monkeypatch.setenv("KILN_HOME", str(reader))
    run_python(page)


def _command(line: str) -> subprocess.CompletedProcess[str]:
    """A line `$ kiln …` of a page, run."""
    words = [sys.executable, "-W", "error", "-m", "tensorkiln.cli", *shlex.split(line)[2:]]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


@SERVES
def test_the_tutorial_runs_from_its_first_line_to_its_last(
    server: Server, reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KILN_URL", raising=False)
    monkeypatch.setenv("KILN_HOME", str(reader))
    monkeypatch.chdir(tmp_path)
    run_python(TUTORIAL)
    monkeypatch.setenv("KILN_URL", server.url)
    commands = [line for block in blocks(TUTORIAL, "console") for line in block.text.splitlines()]
    assert [command.split()[:3] for command in commands] == [["$", "kiln", "doctor"], ["$", "kiln", "report"]]
    for command in commands:
        done = _command(command)
        # A service on a busy machine is not ready now and then, which the doctor says.
        for _ in range(20):
            if done.returncode and "readiness" in done.stdout:
                done = _command(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "rows" in Path("clip.html").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        path, _, fragment = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not fragment or fragment in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_source_file_that_is_named_exists(page: Path) -> None:
    missing = [path for path in SOURCE_PATH.findall(prose(page)) if not (ROOT / path).exists()]
    assert missing == []


def test_every_page_of_the_manual_is_in_its_contents() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {(index.parent / link).resolve() for link in LINK.findall(prose(index))}
    assert listed == {page for page in (ROOT / "docs").rglob("*.md") if page != index}


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "adr").glob("*.md")), ids=name_of)
def test_a_decision_record_has_its_five_headings(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text("utf-8"), re.MULTILINE)
    assert headings == ["Context", "Decision", "Consequences", "Alternatives", "Status"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_graph_that_is_shown_is_valid(page: Path) -> None:
    for block in blocks(page, "json", "graph"):
        Graph.model_validate_json(block.text)


@SERVES
def test_the_curl_command_of_the_readme_compiles(server: Server) -> None:
    (block,) = blocks(README, "sh")
    words = shlex.split(block.text)
    assert words[:2] == ["curl", f"{SERVED}/compile"]
    Graph.model_validate(json.loads(words[words.index("-d") + 1])["graph"])
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    command = [word.replace(SERVED, server.url) for word in words]
    done = subprocess.run(
        [*command, "--silent", "--write-out", "\n%{http_code}"], capture_output=True, text=True, timeout=120, check=True
    )
    body, _, status = done.stdout.rpartition("\n")
    assert status == "200", body
    (program,) = json.loads(body)["programs"]
    assert program["name"] == "double"


@SERVES
def test_the_worked_example_compiles_to_the_program_that_is_shown(server: Server) -> None:
    (graph,), (stated,) = blocks(CONTRACT, "json", "graph"), blocks(CONTRACT, "json", "program")
    body = json.dumps({"graph": json.loads(graph.text), "target": "cpu:x86-64-v3"}).encode()
    answer = server.compile(body)
    assert answer.status_code == 200, answer.text
    (program,) = answer.json()["programs"]
    assert disagreement(program, json.loads(stated.text)) is None
    assert program.keys() == json.loads(stated.text).keys()


@pytest.mark.parametrize("stage", ["form-kernels", "to-linalg", "schedule", "realise"])
def test_a_dump_has_the_lines_that_are_shown(stage: str) -> None:
    (graph,), (shown,) = blocks(CONTRACT, "json", "graph"), blocks(PASSES, "mlir", stage)
    dump = compiled(Graph.model_validate_json(graph.text), "cpu:x86-64-v3", texts=[stage]).dumps[stage]
    assert [line for line in shown.text.splitlines() if line.strip() not in dump] == []


@pytest.mark.parametrize("name", ["convolution", "attention"])
def test_the_linalg_of_a_kernel_has_the_lines_that_are_shown(name: str) -> None:
    b = Builder(name)
    if name == "convolution":
        x, w = b.input("float32", (1, 3, 8, 8)), b.input("float32", (4, 3, 3, 3))
        b.output(relu(conv2d(x, w, padding=1)))
    else:
        q, k, v = (b.input("float32", (b.symbol("n", 1, 512), 16)) for _ in range(3))
        b.output(softmax(q @ k.transpose() * 0.25) @ v)
    (shown,) = blocks(PASSES, "mlir", name)
    dump = compiled(b.graph(), "cpu:x86-64-v3", texts=["to-linalg"]).dumps["to-linalg"]
    assert [line for line in shown.text.splitlines() if line.strip() not in dump] == []


def test_a_sweep_has_the_lines_that_are_shown() -> None:
    b = Builder("variance")
    b.output(var(b.input("float32", (16384,))))
    (shown,) = blocks(PASSES, "mlir", "sweep")
    dump = compiled(b.graph(), "cpu:x86-64-v3", texts=["realise"]).dumps["realise"]
    assert [line for line in shown.text.splitlines() if line.strip() not in dump] == []


def test_the_stages_in_the_table_are_those_that_run() -> None:
    (graph,) = blocks(CONTRACT, "json", "graph")
    stages = [stage.name for stage in compiled(Graph.model_validate_json(graph.text)).program.stages]
    assert re.findall(r"^\| `([\w-]+)` \|.*\|.*\|.*\|$", prose(PASSES), re.MULTILINE)[: len(stages)] == stages


def section(title: str) -> str:
    found = re.search(rf"^### {title}\n(.*?)^##", CONTRACT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def test_the_contract_lists_every_node_kind_and_dtype() -> None:
    rows = [row.split("|")[2] for row in section("Node kinds").splitlines() if row.startswith("| ")][1:]
    kinds = [kind for row in rows for kind in re.findall(r"`(\w+)`", row)]
    assert sorted(kinds) == sorted(NODE_KINDS)
    assert re.findall(r"`(\w+)`", section("Dtypes and literals").strip().split("\n\n")[0]) == list(DType)


def test_the_contract_lists_the_extensions_of_the_schema() -> None:
    first = section("Extensions").split("|---|---|\n")[1].splitlines()[0]
    extensions = json_schema()["x-extensions"]
    assert re.findall(r"`(\w+)`", first) == extensions["dtypes"]
    (unary,) = re.findall(r"^\| (.*) \| the `op` of `unary` \|$", section("Extensions"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", unary) == extensions["unary"]


@SERVES
def test_the_limits_are_those_of_the_code(server: Server) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section("Limits"), re.MULTILINE)
    stated = {name: int(maximum) for name, maximum in rows}
    published: dict[str, Any] = server.http.get("/capabilities").json()["limits"]
    assert stated == {name: published[name] for name in stated}
    known = vars(limits) | vars(compile_limits)
    maxima = {value for name, value in known.items() if name.startswith("MAX_")}
    assert set(stated.values()) == maxima
