"""The report of a stored program, with its signed record and the texts of its stages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from ..report import Report
from ..request import WrittenGraph
from ..runner import LoopRunner
from ..runtime.profile import ItemProfile
from ..spec import CompiledProgram
from ..tasks import together
from ..trust.programs import TrustedPrograms

_PARALLEL_FETCHES: Final = 8


async def report_of(
    trusted: TrustedPrograms,
    program: CompiledProgram | str,
    artifact: Callable[[str], Coroutine[Any, Any, bytes]] | None,
    runner: LoopRunner,
    *,
    graph: WrittenGraph | None,
    profile: Sequence[ItemProfile] = (),
    sizes: Mapping[str, int] | None = None,
) -> Report:
    """The report of a program, given as a record or by digest; without `artifact`, which gives bytes, without texts."""
    compiled = await trusted.by_digest(program) if isinstance(program, str) else program
    signed = await trusted.signed(compiled.digest)
    dumps = signed.record.stages
    code = {
        digest
        for kernel in compiled.kernels
        for digest in (kernel.artifact, kernel.binary)
        if digest and compiled.target.kind == "cuda"
    }
    contents: dict[str, bytes] = {}
    if artifact is not None:
        wanted = sorted({*dumps.values(), *code})
        fetched = await runner.in_loop(together(artifact, wanted, _PARALLEL_FETCHES)) if wanted else ()
        contents = dict(zip(wanted, fetched, strict=True))
    texts = {name: contents[digest].decode() for name, digest in dumps.items() if digest in contents}
    return await runner.offload(
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
