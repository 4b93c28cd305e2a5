"""`kiln mcp` and the tools of a service, spoken to by the client of the official SDK."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.wire import DOUBLE
from tests.report.test_report import data_of
from tests.sdk.test_model_formats_command import DOUBLED
from tests.snippets import ROOT, blocks, disagreement

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tensorkiln.mcp.difference import MOST, differences

PAGE = ROOT / "docs" / "mcp.md"
BROKEN = {**DOUBLE, "nodes": [DOUBLE["nodes"][0], {**DOUBLE["nodes"][1], "b_var": 7}]}
Call = Callable[..., Awaitable[tuple[bool, dict[str, Any]]]]


@asynccontextmanager
async def talking(target: Any) -> AsyncGenerator[tuple[Call, list[str]]]:
    """Calls tools of `target`, a URL or a transport; each gives whether it failed, and its result. And their names."""
    async with asyncio.timeout(120), Client(target) as client:

        async def call(name: str, /, **arguments: Any) -> tuple[bool, dict[str, Any]]:
            result = await client.call_tool(name, arguments)
            assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
            return result.is_error, result.structured_content

        yield call, [tool.name for tool in (await client.list_tools()).tools]


def documented(where: str) -> list[str]:
    rows = [line.split("|") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    return [row[1].strip(" `") for row in rows if row[3].strip(" `") in (where, "both")]


def page(url: str) -> str:
    answer = httpx2.get(url, verify=False)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    return answer.text


def stdio(url: str) -> Any:
    (block,) = blocks(PAGE, "json")
    stated = json.loads(block.text)["mcpServers"]["tensorkiln"]
    assert stated["command"] == "kiln"
    command = ["-W", "error", "-m", "tensorkiln.cli", *stated["args"]]
    return stdio_client(
        StdioServerParameters(
            command=sys.executable, args=command, env={**os.environ, **stated["env"], "KILN_URL": url}
        )
    )


async def test_an_assistant_compiles_repairs_and_compares_at_a_service(served: str) -> None:
    async with talking(f"{served}/mcp") as (call, names):
        assert names == documented("/mcp")
        failed, checked = await call("validate", graph=DOUBLE)
        assert (failed, checked["outputs"][0]["shape"]) == (False, ["n"])
        failed, refused = await call("validate", graph=BROKEN)
        assert failed
        (example,) = blocks(PAGE, "json", "error")
        assert disagreement(refused, json.loads(example.text)) is None
        failed, compiled = await call(
            "compile", graph=DOUBLE, targets=["cpu:x86-64-v3", "cpu:x86-64-v4"], options={"dump_stages": True}
        )
        here, there = (program["digest"] for program in compiled["programs"])
        assert (failed, compiled["programs"][0]["kernel_count"]) == (False, 1)
        failed, found = await call("program", digest=here)
        assert (failed, found["kernels"]) == (False, compiled["programs"][0]["kernels"])
        failed, differs = await call("diff", digest=here, against=there)
        assert "/target/cpu" in {each["at"] for each in differs["differences"]}
        failed, paged = await call("report", digest=here, against=there)
        assert (failed, paged["url"]) == (False, f"{served}/programs/{here}/report?against={there}")
        assert paged["url"] == served + paged["path"]
        data = data_of(page(paged["url"]))
        assert [data[side, "program"]["digest"] for side in ("this", "against")] == [here, there]
        for unknown in ({"digest": "0" * 64}, {"digest": here, "against": "0" * 64}):
            failed, refused = await call("report", **unknown)
            assert (failed, refused["error"]["code"]) == (True, "request.not_found")
        failed, stage = await call("stage", digest=here, stage="from-graph")
        assert "kiln." in stage["text"]
        failed, explained = await call(
            "explain", stablehlo=DOUBLED, dims={"0.0": {"min": 1, "max": 8}}, targets=["cpu"]
        )
        assert (failed, len(explained["actions"])) == (False, 1)
        failed, schema = await call("schema", name="binop")
        assert "a_var" in schema["schema"]["properties"]
        failed, capable = await call("capabilities")
        assert "binop" in capable["node_kinds"]


async def test_calls_that_fit_no_schema_say_what_would(served: str) -> None:
    async with talking(f"{served}/mcp") as (call, _):
        for arguments, said in (
            ({"name": "compile", "graph": DOUBLE}, "'targets' is a required property"),
            ({"name": "compile", "targets": ["cpu"]}, "either `graph` or `stablehlo`"),
            ({"name": "compile", "graph": DOUBLE, "dims": {}, "targets": ["cpu"]}, "symbolic_vars"),
            ({"name": "stage", "digest": "../../keys", "stage": "x"}, "does not match"),
            ({"name": "program", "digest": "0" * 64}, "There is no program"),
            ({"name": "validate", "graph": DOUBLE, "made_up": 1}, "made_up"),
            ({"name": "run", "graph": DOUBLE}, "There is no tool 'run'; details.tools lists them."),
        ):
            name = arguments.pop("name")
            failed, result = await call(name, **arguments)
            assert failed
            assert said in result["error"]["message"]


async def test_kiln_mcp_runs_and_measures_on_this_machine(served: str) -> None:
    async with talking(stdio(served)) as (call, names):
        assert names == documented("kiln mcp")
        failed, ran = await call("run", graph=DOUBLE, inputs=[[1.0, 2.5, -3.0]])
        assert (failed, ran["symbols"], ran["outputs"][0]["values"]) == (False, {"n": 3}, [2.0, 5.0, -6.0])
        failed, paged = await call("report", digest=ran["digest"])
        assert (failed, paged["url"]) == (False, f"{served}/programs/{ran['digest']}/report")
        assert data_of(page(paged["url"]))["this", "program"]["digest"] == ran["digest"]
        failed, ran = await call("run", graph=DOUBLE, inputs=[[1e38, 3e38]])
        assert ran["outputs"][0]["values"][1] == "inf"
        failed, measured = await call("profile", graph=DOUBLE, symbols={"n": 64}, repeat=3)
        assert (failed, measured["runs"], measured["items"][0]["kind"]) == (False, 3, "kernel")
        assert measured["total_ns"] > 0
        for arguments, said in (
            ({"inputs": [["x"]]}, "Input 0 is not an array of float32"),
            ({"inputs": []} | {"inputs": [[1.0], [2.0]]}, "takes 1 inputs and 2 are given"),
            ({"inputs": [[1.0]], "symbols": {"n": 2}}, "the inputs make it 1"),
            ({"inputs": [[[1.0]]]}, "0"),
        ):
            failed, result = await call("run", graph=DOUBLE, **arguments)
            assert failed
            assert said in result["error"]["message"]
        failed, refused = await call("run", graph=BROKEN)
        assert (failed, refused["error"]["at"][0]["value"]["b_var"]) == (True, 7)


async def test_an_embedded_kiln_mcp_writes_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_HOME", str(tmp_path / "home"))
    async with talking(stdio("")) as (call, names):
        assert names == documented("kiln mcp")
        failed, compiled = await call("compile", graph=DOUBLE, targets=["cpu:x86-64-v3", "cpu:x86-64-v4"])
        here, there = (program["digest"] for program in compiled["programs"])
        failed, written = await call("report", digest=here, against=there)
        assert (failed, written.keys()) == (False, {"file", "media_type"})
        data = data_of(Path(written["file"]).read_text("utf-8"))
        assert [data[side, "program"]["digest"] for side in ("this", "against")] == [here, there]
        failed, alone = await call("report", digest=here)
        assert failed is False
        assert alone["file"] != written["file"]
        assert data_of(Path(alone["file"]).read_text("utf-8"))["this", "program"]["digest"] == here
        for name in ("digest", "against"):
            failed, refused = await call("report", **{"digest": here, name: "0" * 64})
            assert (failed, refused["error"]["code"]) == (True, "request.not_found")
        reports = tmp_path / "home" / "reports"
        assert len(list(reports.iterdir())) == 2
        reports.rename(reports.with_name("moved"))
        reports.write_text("in the place of the folder")
        failed, refused = await call("report", digest=here)
        assert (failed, refused["error"]["code"]) == (True, "infra.unavailable")
        assert "cannot be written" in refused["error"]["message"]
        reports.unlink()


def test_a_difference_names_places_and_shortens_values() -> None:
    here = {"a/b": [1, {"x": "y" * 500}], "same": {"k": [1]}, "gone": None}
    there = {"a/b": [1, {"x": "z"}, 3], "same": {"k": [1]}, "new": [1, 2]}
    found = differences(here, there)
    assert found["count"] == 4
    assert {each["at"] for each in found["differences"]} == {"/a~1b/1/x", "/a~1b/2", "/gone", "/new"}
    assert found["differences"][0] == {"at": "/a~1b/1/x", "here": "y" * 200 + "…", "there": "z"}
    assert found["differences"][1] == {"at": "/a~1b/2", "there": 3}
    assert differences([*range(500)], [])["count"] == 500
    assert len(differences([*range(500)], [])["differences"]) == MOST
