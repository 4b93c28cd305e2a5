"""The figures behind GET /capabilities, gathered once."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from service.sandbox.control import Ready
from service.sandbox.levels import Level
from service.settings import Settings
from service.wire.body import MAX_BATCH, MAX_TARGETS
from tensorkiln import compile_limits, limits
from tensorkiln.architectures import ARCHITECTURES
from tensorkiln.compiler_build import build
from tensorkiln.spec.abi import ABI_VERSION
from tensorkiln.target import LEVELS
from tensorkiln.trust import KeySet

from .answers import Capabilities, Isolation
from .coded_bodies import CODINGS, MAX_FRAMES, MAX_RATIO, MAX_WINDOW_BYTES

SCHEMA_VERSIONS = (1,)
_ASSEMBLER: Final = "nvidia-nvjitlink"
"""The package with NVIDIA's assembler as a library: a compile may not start a program such as ptxas."""


def described(settings: Settings, ready: Ready) -> Capabilities:
    """The capabilities of a service with these settings and this fork server, without the keys."""
    # Imported here: a private service is rarely asked for its capabilities.
    from tensorkiln.custom import registered
    from tensorkiln.dtypes import DType
    from tensorkiln.nodes import NODE_KINDS

    return Capabilities(
        build_id=build().build_id,
        versions=build().versions,
        schema_versions=SCHEMA_VERSIONS,
        abi=ABI_VERSION,
        targets=("cpu", *(f"cpu:{level}" for level in LEVELS), *(f"cuda:{name}" for name in ARCHITECTURES)),
        ptxas=_assembler(),
        node_kinds=tuple(NODE_KINDS),
        custom_operations=tuple(registered()),
        dtypes=tuple(DType),
        limits={
            "nodes": limits.MAX_NODES,
            "rank": limits.MAX_RANK,
            "symbols": limits.MAX_SYMBOLS,
            "expression_depth": limits.MAX_EXPRESSION_DEPTH,
            "expression_terms": limits.MAX_EXPRESSION_TERMS,
            "kernel_depth": limits.MAX_KERNEL_DEPTH,
            "loop_depth": limits.MAX_LOOP_DEPTH,
            "json_depth": limits.MAX_JSON_DEPTH,
            "elements": limits.MAX_ELEMENTS,
            "buffer_bytes": limits.MAX_BUFFER_BYTES,
            "operations": compile_limits.MAX_OPERATIONS,
            "code_bytes": compile_limits.MAX_CODE_BYTES,
            "body_bytes": limits.MAX_BODY_BYTES,
            "body_ratio": MAX_RATIO,
            "body_window_bytes": MAX_WINDOW_BYTES,
            "body_frames": MAX_FRAMES,
            "targets": MAX_TARGETS,
            "batch": MAX_BATCH,
            "compile_deadline_s": settings.compile_deadline_s,
            "compile_memory_mib": settings.compile_memory_mib,
            "compile_output_mib": settings.compile_output_mib,
        },
        isolation=Isolation(level=Level(ready.level), mechanisms=ready.mechanisms, shortcomings=ready.shortcomings),
        content_codings=CODINGS,
        keys=KeySet(keys=()),
    )


def _assembler() -> str | None:
    """The version of the installed assembler, found without loading it: this process compiles nothing."""
    try:
        return version(_ASSEMBLER)
    except PackageNotFoundError:
        return None
