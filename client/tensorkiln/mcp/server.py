"""A Model Context Protocol server for the tools. Needs the package `mcp`: `pip install 'tensorkiln[mcp]'`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

import mcp_types as types
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from mcp.server import Server, ServerRequestContext

from ..errors import NotFoundError, RequestError, TensorkilnError
from ..transport import sdk_version
from .tool import Requests, Tool
from .tools import named

_INSTRUCTIONS: Final = (
    "Compiles tensor graphs to code for CPUs and NVIDIA GPUs. Start with `schema`, write a graph, `validate` it, then "
    "`compile`. An error has a stable `code`, a `message` that says what to do, `pointers` into the graph, and under "
    "`at` the nodes that these point to: repair them and send the graph again."
)
_MOST_POINTERS: Final = 20
_MOST_PROBLEMS: Final = 16
"""The most schema violations collected per call."""


def make_server(tools: Sequence[Tool], requests: Requests) -> Server[Any]:
    """A server that answers tool calls by sending `requests`."""
    known = named(tools)

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = [types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema) for tool in tools]
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments: dict[str, Any] = params.arguments or {}
        try:
            tool = known.get(params.name)
            if tool is None:
                raise NotFoundError(
                    f"There is no tool {params.name[:64]!r}; details.tools lists them.", details={"tools": list(known)}
                )
            _check(tool, arguments)
            return _answer(await tool.call(requests, arguments))
        except TensorkilnError as error:
            return _answer(explained(error, arguments), is_error=True)

    return Server(
        "tensorkiln",
        version=sdk_version(),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def explained(error: TensorkilnError, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An error as JSON: its problem fields, and the parts of the graph that its pointers refer to."""
    graph = arguments.get("graph")
    found = ((pointer, _pointed(graph, pointer)) for pointer in error.pointers[:_MOST_POINTERS])
    return {
        "error": {
            "code": error.code,
            "title": error.title,
            "message": error.message,
            "retryable": error.retryable,
            "pointers": list(error.pointers),
            "details": error.details,
            "at": [{"pointer": pointer, "value": value} for pointer, value in found if value is not None],
        }
    }


def _check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    found = Draft202012Validator(tool.schema).iter_errors(arguments)
    problems = cast("list[ValidationError]", list(islice(found, _MOST_PROBLEMS)))
    if problems:
        first = min(problems, key=lambda problem: len(problem.absolute_path))
        where = "".join(f"/{part}" for part in first.absolute_path)
        # Shortened, because the message quotes the value, which may be a whole graph.
        said = f"The arguments of {tool.name} do not fit its schema: {first.message[:300]}."
        raise RequestError(said, pointers=[where] if where else [], details={"takes": list(tool.takes)})


def _pointed(graph: Any, pointer: str) -> Any:
    """The part of the graph that a JSON Pointer refers to, at most two levels deep (a node); None if missing."""
    parts = pointer.split("/")[1:]
    if parts[:1] == ["graph"]:
        parts = parts[1:]
    value = graph
    for part in parts[:2]:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(part)]
        else:
            return None
    return value if parts else None


def _answer(result: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=json.dumps(result, ensure_ascii=False))]
    return types.CallToolResult(content=content, structured_content=result, is_error=is_error)
