"""The report of a program that a service has: what it was signed with, and the texts of its stages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from ..report import Report
from ..request import WrittenGraph
from ..runtime.profile import ItemProfile
from ..spec import CompiledProgram
from ..trust.programs import TrustedPrograms
from ..wire import Wire

_PARALLEL_FETCHES: Final = 8


async def report_of(
    trusted: TrustedPrograms,
    program: CompiledProgram | str,
    artifact: Callable[[str], Coroutine[Any, Any, bytes]] | None,
    wire: Wire,
    *,
    graph: WrittenGraph | None,
    profile: Sequence[ItemProfile] = (),
    sizes: Mapping[str, int] | None = None,
) -> Report:
    """The report of a program, or of that with a digest. `artifact` gives bytes by SHA-256; texts are left out where
    nothing does.
    """
    compiled = await trusted.by_digest(program) if isinstance(program, str) else program
    signed = await trusted.signed(compiled.digest)
    dumps = signed.record.stages
    code = {kernel.artifact for kernel in compiled.kernels if kernel.artifact and compiled.target.kind == "cuda"}
    contents: dict[str, bytes] = {}
    if artifact is not None:
        wanted = sorted({*dumps.values(), *code})
        contents = dict(zip(wanted, await wire.together(artifact, wanted, _PARALLEL_FETCHES), strict=True))
    texts = {name: contents[digest].decode() for name, digest in dumps.items() if digest in contents}
    return await wire.apart(
        lambda: Report.of(
            compiled,
            graph=graph,
            stages=texts,
            artifacts=contents,
            signature=signed,
            profile=profile,
            sizes=sizes,
        )
    )
