"""The data of one program, as the parts of a report page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from ..canonical import canonicalize
from ..errors import RequestError
from ..graph import Graph
from ..request import WrittenGraph, graph_json
from ..schedule import KernelItem
from ..spec import CompiledProgram
from ..trust.record import SignedRecord
from ..whole_file import whole_file
from .page import CODE_STAGE, PTX, Parts, page
from .sass import sass

if TYPE_CHECKING:
    from ..runtime.profile import ItemProfile

_FRAME_PIXELS: Final = 760


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a program; `html` is the page, and a notebook shows it."""

    parts: Parts

    @classmethod
    def of(
        cls,
        program: CompiledProgram,
        *,
        graph: WrittenGraph | None = None,
        stages: Mapping[str, str] | None = None,
        artifacts: Mapping[str, bytes] | None = None,
        signature: SignedRecord | None = None,
        profile: Sequence[ItemProfile] = (),
        sizes: Mapping[str, int] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> Report:
        """The report of `program`; with `graph`, the graph that it was compiled from, the page shows its nodes.

        `stages` has the texts of its stages by name, `artifacts` its code by SHA-256. Code is shown as text: PTX, and
        cubins if `nvdisasm` is installed. `profile` is the profile of a run at the sizes `sizes`. `about` has further
        entries for the page, by name. RequestError when `graph` or `profile` belongs to another program, or a size is
        missing or out of bounds; InvalidGraphError for an invalid graph.
        """
        parts: dict[str, bytes] = {"program": program.model_dump_json().encode()}
        if graph is not None:
            parts |= _graph_parts(program, graph)
        texts = dict(stages or {})
        if CODE_STAGE not in texts:
            texts |= _code(program, artifacts or {})
        texts |= sass(program, artifacts or {})
        parts |= {f"stage:{name}": _json(text) for name, text in texts.items()}
        if signature is not None:
            parts["signature"] = signature.to_json()
        if profile:
            parts["profile"] = _json(_profile(program, profile, sizes or {}))
        if about:
            parts["about"] = _json(dict(about))
        return cls(parts)

    def html(self, against: Report | None = None) -> str:
        """The page; with `against`, a comparison with another program."""
        return self._page(against).decode()

    def save(self, path: str | os.PathLike[str], against: Report | None = None) -> None:
        """Write the page to a file, which appears complete or not at all. OSError when it cannot be written."""
        with whole_file(path) as file:
            file.write(self._page(against))

    def _page(self, against: Report | None) -> bytes:
        return page(self.parts, None if against is None else against.parts)

    def _repr_html_(self) -> str:
        # A frame isolates the page's style and script from the notebook.
        sandbox = 'sandbox="allow-scripts"'
        return f'<iframe {sandbox} width="100%" height="{_FRAME_PIXELS}" srcdoc="{escape(self.html())}"></iframe>'


def _graph_parts(program: CompiledProgram, graph: WrittenGraph) -> dict[str, bytes]:
    read = graph if isinstance(graph, Graph) else Graph.model_validate_json(graph_json(graph))
    kinds = [node.node for node in read.nodes]
    for item in program.schedule.items:
        for op in item.operation.ops if isinstance(item.operation, KernelItem) else ():
            if op.node >= len(kinds) or kinds[op.node] != op.kind:
                raise RequestError(
                    f"the program was not compiled from this graph: its item {item.item_id} holds a {op.kind} as node "
                    f"{op.node}; give the graph that it was compiled from, or none"
                )
    # Texts of stages refer to nodes of the canonical graph.
    return {"graph": read.to_json().encode(), "names": _json({"nodes": canonicalize(read).nodes})}


def _profile(program: CompiledProgram, profile: Sequence[ItemProfile], sizes: Mapping[str, int]) -> dict[str, Any]:
    count = len(program.schedule.items)
    for each in profile:
        if not 0 <= each.item_id < count:
            raise RequestError(f"the profile is of another program: it has an item {each.item_id} of {count}")
    for name, (low, high) in program.symbol_ranges.items():
        if name not in sizes:
            raise RequestError(
                f"a profile is of a run at some sizes: give that of {name}, as sizes={{{name!r}: {low}}}"
            )
        if not low <= sizes[name] <= high:
            raise RequestError(f"the profile is of another program: its {name} is {sizes[name]}, not {low} to {high}")
    items = [{"item_id": each.item_id, "ns": each.ns, "threads": each.threads} for each in profile]
    return {"sizes": {name: sizes[name] for name in program.symbol_ranges}, "items": items}


def _json(value: object) -> bytes:
    # UTF-8 has no halves of surrogate pairs. Those are in strings, where the escape that replaces them is JSON's.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")


def _code(program: CompiledProgram, artifacts: Mapping[str, bytes]) -> dict[str, str]:
    """The PTX of a program's kernels; empty for other targets and without the artifacts."""
    if program.target.kind != "cuda":
        return {}
    digests = sorted({kernel.artifact for kernel in program.kernels if kernel.artifact} & artifacts.keys())
    texts = [artifacts[digest].rstrip(b"\0").decode("utf-8", "replace") for digest in digests]
    return {PTX: "\n".join(texts)} if texts else {}
