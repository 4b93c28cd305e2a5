"""The tools of every service: compile, validate, explain, diff, and others for graphs and programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from ..errors import NotFoundError, RequestError
from .difference import differences
from .tool import Arguments, Requests, Result, Tool

MAX_TEXT: Final = 200_000
"""The most characters returned of a stage's text, to fit the context of an assistant."""
_SCHEMA: Final = "Graph"
_GIVEN: Final = ("graph", "stablehlo", "dims")


async def _capabilities(requests: Requests, arguments: Arguments) -> Result:
    return json.loads(await requests.get("/capabilities"))


async def _validate(requests: Requests, arguments: Arguments) -> Result:
    return json.loads(await requests.post("/validate", _body(source(arguments))))


async def _compile(requests: Requests, arguments: Arguments) -> Result:
    answer = json.loads(await requests.post("/compile", _body(_work(arguments))))
    return {"programs": [summary(program) for program in answer["programs"]]}


async def _explain(requests: Requests, arguments: Arguments) -> Result:
    return json.loads(await requests.post("/explain", _body(_work(arguments))))


async def _program(requests: Requests, arguments: Arguments) -> Result:
    return summary(await _stored(requests, arguments["digest"]))


async def _diff(requests: Requests, arguments: Arguments) -> Result:
    here, there = [await requests.get(f"/programs/{arguments[name]}") for name in ("digest", "against")]
    # In a thread: large programs take seconds, which would block the event loop.
    found = await asyncio.to_thread(lambda: differences(json.loads(here), json.loads(there)))
    return {"digest": arguments["digest"], "against": arguments["against"], **found}


async def _stage(requests: Requests, arguments: Arguments) -> Result:
    path = f"/programs/{arguments['digest']}/stages/{quote(arguments['stage'], safe='')}"
    text = (await requests.get(path)).decode("utf-8", "replace")
    return {"stage": arguments["stage"], "characters": len(text), "text": text[:MAX_TEXT]}


async def _report(requests: Requests, arguments: Arguments) -> Result:
    against = f"?against={arguments['against']}" if "against" in arguments else ""
    path = f"/programs/{arguments['digest']}/report{against}"
    for name in ("digest", "against"):
        if name in arguments:
            await requests.get(f"/programs/{arguments[name]}/signature")  # NotFoundError for one that is not there
    url = {} if requests.base_url is None else {"url": requests.base_url + path}
    return {**url, "path": path, "media_type": "text/html"}


async def _schema(requests: Requests, arguments: Arguments) -> Result:
    schemas: dict[str, Any] = json.loads(await requests.get("/openapi.json"))["components"]["schemas"]
    name = arguments.get("name", _SCHEMA)
    names = [each for each in schemas if each == _SCHEMA or each.startswith(f"{_SCHEMA}.")]
    found = next((each for each in names if _bare(each) == _bare(name)), None)
    if found is None:
        raise NotFoundError(f"There is no schema {name!r}; details.names lists the schemas.", details={"names": names})
    return {"name": found, "schema": schemas[found], "names": names}


def _bare(name: str) -> str:
    """A normalized node name: `Graph.ReduceAxis` and `reduce_axis` give the same."""
    return name.removeprefix(f"{_SCHEMA}.").replace("_", "").lower()


def summary(program: Mapping[str, Any]) -> Result:
    """A summary of a compiled program (a JSON object) without its schedule and code."""
    kernels = program["kernels"]
    return {
        "name": program["name"],
        "digest": program["digest"],
        "target": program["target"],
        "symbols": program["symbols"],
        "inputs": program["inputs"],
        "outputs": program["outputs"],
        "kernels": [{key: value for key, value in kernel.items() if key in ("name", "entry")} for kernel in kernels],
        "kernel_count": len(kernels),
        "buffer_count": len(program["buffers"]),
        "stages": [{key: value for key, value in each.items() if key != "dump"} for each in program["stages"]],
        "cache": program.get("cache"),
    }


async def _stored(requests: Requests, digest: str) -> dict[str, Any]:
    return json.loads(await requests.get(f"/programs/{digest}"))


def source(arguments: Arguments) -> dict[str, Any]:
    """The request fields of the graph or module to compile; RequestError unless exactly one is given."""
    if ("graph" in arguments) == ("stablehlo" in arguments):
        raise RequestError("Give either `graph` or `stablehlo`.", pointers=["/graph"])
    if "graph" in arguments:
        if "dims" in arguments:
            raise RequestError("`dims` is for `stablehlo`; a graph has bounds in symbolic_vars.", pointers=["/dims"])
        return {"graph": arguments["graph"]}
    return {
        "stablehlo": {"text": arguments["stablehlo"]},
        **({"dims": arguments["dims"]} if "dims" in arguments else {}),
    }


def _work(arguments: Arguments) -> dict[str, Any]:
    options = {"options": arguments["options"]} if "options" in arguments else {}
    return {**source(arguments), "target": arguments["targets"], **options}


def _body(fields: Mapping[str, Any]) -> bytes:
    # The service refuses values that JSON lacks, such as infinities.
    return json.dumps(fields, separators=(",", ":")).encode()


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        "capabilities", "List the targets, node kinds, dtypes, limits and build of the service.", (), (), _capabilities
    ),
    Tool("schema", "Return the JSON Schema of graphs or, with `name`, of one kind of node.", ("name",), (), _schema),
    Tool(
        "validate",
        "Check a graph and infer every shape and dtype, without compiling it.",
        _GIVEN,
        (),
        _validate,
    ),
    Tool(
        "compile",
        "Compile a graph for one or more targets. Returns for each program its digest, kernels, stages, and whether it "
        "was in the cache; the code stays in the store of the service.",
        (*_GIVEN, "targets", "options"),
        ("targets",),
        _compile,
    ),
    Tool(
        "explain",
        "Return whether a compile would hit the store, the parts of its key, and the nearest stored program. Compiles "
        "nothing.",
        (*_GIVEN, "targets", "options"),
        ("targets",),
        _explain,
    ),
    Tool("program", "Return the summary of a stored program, by its digest.", ("digest",), ("digest",), _program),
    Tool(
        "diff",
        "List where two programs of different targets, builds, options or graphs differ, by JSON Pointer.",
        ("digest", "against"),
        ("digest", "against"),
        _diff,
    ),
    Tool(
        "report",
        "Return the URL of an HTML page for people: kernels, schedule, memory and IR of a program, or of two compared.",
        ("digest", "against"),
        ("digest",),
        _report,
    ),
    Tool(
        "stage",
        "Return the IR after a stage of a program that was compiled with the option dump_stages.",
        ("digest", "stage"),
        ("digest", "stage"),
        _stage,
    ),
)


def named(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by name."""
    return {tool.name: tool for tool in tools}
