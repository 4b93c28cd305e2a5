"""The methods of every client, as coroutines."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ..errors import RequestError
from ..graph import Graph
from ..request import GraphSource, WrittenGraph, validate_body
from ..retries import Deadline
from ..stablehlo import StableHlo
from ..uncollected import uncollected
from .asked import NATIVE, Asked, OptionsSource, Targets, TargetSource, options_of
from .connection import Connection
from .needed_later import load_early

if TYPE_CHECKING:
    from ..program import Program
    from ..report import Report
    from ..runtime.profile import ItemProfile
    from ..spec import CompiledProgram
    from ..trust.question import Question
    from ..trust.record import SignedRecord
    from .asked import Device
    from .async_job import AsyncJob
    from .job_records import JobStatus, Progress

_PARALLEL_FETCHES: Final = 8
_AS_JOB: Final = {"Prefer": "respond-async"}


class Calls(Connection):
    """The methods of a client, in coroutines."""

    async def compile(
        self,
        graph: GraphSource,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        threads: int | None = None,
        device: Device | None = None,
        on_progress: Progress | None = None,
    ) -> Program:
        """Compile `graph` for `target` and load the program, ready to be called with arrays.

        JSON (text, bytes or an object) is validated by the service. `cpu:native` means the CPU of this machine.
        `threads` is the number of threads that a CPU program may use, `device` the GPU that a CUDA program runs on;
        None means the default of `Program`.

        With `on_progress` the compile is a job, and the function is called with its events. If it raises, on Ctrl-C,
        and after `timeout_s`, the job is cancelled at the service.
        """
        (compiled,) = await self.compile_for(graph, [target], options, on_progress=on_progress)
        return await self.load(compiled, threads=threads, device=device)

    async def compile_for(
        self,
        graph: GraphSource,
        targets: Sequence[TargetSource],
        options: OptionsSource | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> tuple[CompiledProgram, ...]:
        """Compile for several targets in one request; return one program record per target, in order.

        `on_progress` as for `compile`. A record can be read on any machine; `load` makes it callable on a machine of
        its target.
        """
        await self._begin(graph)
        asked = await self._asked(graph, targets, options)
        if self.offline:
            return await self._trusted.kept(await self._question(asked))
        if on_progress is not None:
            return (await self._followed(asked, on_progress))[0]
        found = await self._kept_of_this_build(asked)
        if found is not None:
            return found
        await self._start()
        return await self._verified(asked, await self._posted(asked, {}))

    async def tune(
        self,
        graph: GraphSource,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> CompiledProgram:
        """Time the possible schedules and return the program with the fastest; its `tuning` has the measurements.

        The service times them once, on its own CPU: UnsupportedGraphError for another target. From then on, every
        compile with the option `tuned="prefer"` against the service's store returns this program.
        `on_progress` as for `compile`.
        """
        wanted = options_of(options).model_copy(update={"tuned": "measure"})
        (compiled,) = await self.compile_for(graph, [target], wanted, on_progress=on_progress)
        return compiled

    async def translate(self, module: StableHlo) -> Graph:
        """Have the service translate a StableHLO module to a graph. Other methods also take a module as their graph.

        UnsupportedGraphError names the operation that has no translation. The translation is cached for `offline`.
        """
        return await self._translations.graph(module)

    async def signature(self, digest: str) -> SignedRecord:
        """The signed record of a compile, by the digest of its program."""
        return await self._trusted.signed(digest)

    async def submit(
        self, graph: GraphSource, target: Targets = NATIVE, options: OptionsSource | None = None
    ) -> AsyncJob:
        """Submit a job that compiles `graph` for one target or several. It runs even if the client leaves."""
        if self.offline:
            raise RequestError("A job needs a service, and offline is set.")
        asked = await self._asked(graph, target, options)
        # Start the service before the job is sent: until then there is no job to cancel if the caller leaves.
        await self._transport.find()
        return await self._submitted(asked, None)

    async def explain(
        self, graph: GraphSource, target: Targets = NATIVE, options: OptionsSource | None = None
    ) -> dict[str, Any]:
        """Report whether a compile would hit the service's store, and the reason if not. Nothing is compiled."""
        from .answers import fields

        asked = await self._asked(graph, target, options)
        return fields(await self._transport.post("/explain", asked.body))

    async def stored(
        self, graph: GraphSource, target: Targets = NATIVE, options: OptionsSource | None = None
    ) -> tuple[CompiledProgram, ...]:
        """Read the program record of each target, in order, from the service's store. Nothing is compiled.

        NotFoundError when a program is missing, or evicted during the call; `details.cache` has the service's reason,
        if any.
        """
        asked = await self._asked(graph, target, options)
        question = await self._question(asked)
        if self.offline:
            return await self._trusted.kept(question)
        from .answers import Explanation, read, require_stored

        # Everything below is read by digest, so that a program evicted meanwhile is not compiled again.
        actions = read(Explanation, await self._transport.post("/explain", asked.body)).actions
        require_stored(actions, asked)
        signatures = [await self._trusted.signed(each.digest) for each in actions]
        return await self._trusted.answers(question, actions, signatures)

    async def load(
        self, compiled: CompiledProgram, *, threads: int | None = None, device: Device | None = None
    ) -> Program:
        """Fetch and verify the artifacts of a compiled program and make it callable.

        DeviceError when it was compiled for another kind of machine; for a GPU, the first call raises it.
        """
        with uncollected():
            from ..program import Program

        signed = await self._require_signed(compiled)
        artifacts = await self._fetched(compiled)
        return await self._runner.offload(
            lambda: Program(compiled, artifacts.__getitem__, threads=threads, device=device, signed=signed)
        )

    async def program(self, digest: str, *, threads: int | None = None, device: Device | None = None) -> Program:
        """Load a stored program by its digest, with the canonical names of its symbols and vars."""
        return await self.load(await self._trusted.by_digest(digest), threads=threads, device=device)

    async def save(self, compiled: CompiledProgram, path: str | os.PathLike[str]) -> None:
        """Write a program with its code as a `.kiln` file, and its signature beside it, as `<path>.sig`.

        Each file is written completely or not at all. `Program.from_bundle` reads them. OSError when they cannot be
        written.
        """

        from ..trust.carried import write_signed

        signed = await self._trusted.require(compiled)
        program = await self._trusted.content(signed.record)
        artifacts = await self._fetched(compiled)
        await self._runner.offload(lambda: write_signed(path, compiled, artifacts.__getitem__, program, signed))

    async def stage(self, digest: str, name: str) -> str:
        """The IR text of one stage of a program that was compiled with `dump_stages`."""
        path = f"/programs/{quote(digest, safe='')}/stages/{quote(name, safe='')}"
        return (await self._transport.get(path)).decode()

    async def report(
        self,
        program: CompiledProgram | str,
        *,
        graph: GraphSource | None = None,
        profile: Sequence[ItemProfile] = (),
        sizes: Mapping[str, int] | None = None,
    ) -> Report:
        """Make a page about a compiled program, given as a record or by its digest; `save` writes it as one HTML file.

        It shows the signature, and the texts of the stages if the program was compiled with `dump_stages`. `graph` is
        the graph that it was compiled from; the page then shows its nodes. `profile` is a result of `Program.profile`
        at the sizes `sizes`. RequestError when an argument belongs to another program, or a size is missing.
        """
        from .reports import report_of

        written = None if graph is None else await self._written(graph)
        texts = None if self.offline else self.artifact
        return await report_of(self._trusted, program, texts, self._runner, graph=written, profile=profile, sizes=sizes)

    async def artifact(self, digest: str) -> bytes:
        """The bytes with this SHA-256."""
        return await self._artifacts.get(digest)

    async def validate(self, graph: GraphSource) -> dict[str, Any]:
        """The service's report about a valid graph; an invalid graph raises its error."""
        from .answers import fields

        written = await self._written(graph)
        body = await self._runner.offload(lambda: validate_body(written))
        return fields(await self._transport.post("/validate", body))

    async def capabilities(self) -> dict[str, Any]:
        """The capabilities of the service: targets, node kinds, dtypes, limits, its build."""
        from .answers import fields

        return fields(await self._transport.get("/capabilities"))

    async def _begin(self, graph: GraphSource) -> None:
        """Start the embedded service early where it is sure to be needed: in a home directory without keys."""
        self._transport.require_open()
        if isinstance(graph, Graph) and not self.offline and not self._keys.is_dir():
            await self._start()

    async def _start(self) -> None:
        """Start the embedded service unless it runs; import the modules that read its answer while it starts."""
        if self._is_private:
            await self._runner.offload(self._service().begin)
            await self._runner.offload(load_early)

    async def _written(self, graph: GraphSource) -> WrittenGraph:
        return await self.translate(graph) if isinstance(graph, StableHlo) else graph

    async def _asked(self, graph: GraphSource, targets: Targets, options: OptionsSource | None) -> Asked:
        written = await self._written(graph)
        return await self._runner.offload(lambda: Asked.of(written, targets, options))

    async def _question(self, asked: Asked) -> Question:
        return await self._trusted.question(asked.body, asked.graph, asked.targets, asked.options)

    async def _posted(self, asked: Asked, headers: Mapping[str, str], deadline: Deadline | None = None) -> bytes:
        programs = len(asked.targets)
        return await self._transport.post("/compile", asked.body, headers, programs=programs, deadline=deadline)

    async def _verified(self, asked: Asked, content: bytes) -> tuple[CompiledProgram, ...]:
        """The programs of an answer, after checking that they are signed and match the request."""
        from .answers import Programs, read, require_each

        answer = await self._runner.offload(lambda: read(Programs, content))
        require_each(answer.programs, asked)
        return await self._trusted.answers(await self._question(asked), answer.programs, answer.signatures)

    async def _fetched(self, compiled: CompiledProgram) -> dict[str, bytes]:
        """The artifacts of a program by digest."""
        digests = sorted(compiled.artifacts)
        found = {each: data for each in digests if (data := await self._artifacts.kept(each)) is not None}
        missing = [each for each in digests if each not in found]
        if missing:
            from ..tasks import together

            fetched = await self._runner.in_loop(together(self.artifact, missing, _PARALLEL_FETCHES))
            found |= zip(missing, fetched, strict=True)
        return found

    async def _compiled_by_job(
        self, graph: GraphSource, targets: Sequence[TargetSource], options: OptionsSource | None
    ) -> tuple[tuple[CompiledProgram, ...], JobStatus | None]:
        """Like `compile_for`, by a job; also returns the job's last status, None when offline."""
        if self.offline:
            return await self.compile_for(graph, targets, options), None
        return await self._followed(await self._asked(graph, targets, options), None)

    async def _followed(
        self, asked: Asked, on_progress: Progress | None
    ) -> tuple[tuple[CompiledProgram, ...], JobStatus]:
        """Compile by a job; cancel it when the caller leaves (Ctrl-C, for example) or the deadline passes."""
        # The start of a service has a timeout of its own and is no part of the deadline.
        await self._transport.find()
        deadline = Deadline.after(self._settings.timeout_s)
        job = await self._submitted(asked, deadline)
        try:
            return await job.wait_until(deadline, on_progress), job.latest
        except BaseException:
            if not job.latest.is_over:
                await job.give_up()
            raise

    async def _submitted(self, asked: Asked, deadline: Deadline | None) -> AsyncJob:
        """Submit a job. If the caller leaves before it is accepted, cancel it, so that no job runs unowned."""
        from .async_job import AsyncJob

        return await self._runner.in_loop(self._accepted(asked, deadline), AsyncJob.give_up)

    async def _accepted(self, asked: Asked, deadline: Deadline | None) -> AsyncJob:
        from .answers import read
        from .async_job import AsyncJob
        from .job_records import JobStatus

        # A retry after a lost answer gets the job that the first request made.
        headers = {**_AS_JOB, "Idempotency-Key": secrets.token_hex(16)}
        accepted = read(JobStatus, await self._posted(asked, headers, deadline))
        return AsyncJob(accepted, self._transport, lambda content: self._verified(asked, content), len(asked.targets))
