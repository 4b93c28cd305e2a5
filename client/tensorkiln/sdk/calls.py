"""What a client does, once for every kind of client."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ..cache import LocalCache
from ..compiler_build import build
from ..deadline import Deadline
from ..embedded import EmbeddedService, embedded_service
from ..errors import NotFoundError, RequestError, TensorkilnError
from ..graph import Graph
from ..request import GraphSource, WrittenGraph, validate_body
from ..settings import resolve_settings
from ..stablehlo import StableHlo
from ..transport import Transport
from ..trust.policy import resolve_policy
from ..uncollected import uncollected
from ..wire import Address, Wire
from .asked import NATIVE, Asked, OptionsSource, Targets, TargetSource, options_of
from .key_function import given_key
from .needed_later import load_early

if TYPE_CHECKING:
    from ..artifacts import ArtifactCache
    from ..program import Program
    from ..report import Report
    from ..runtime.cuda import Driver
    from ..runtime.profile import ItemProfile
    from ..spec import CompiledProgram
    from ..trust.policy import Policy
    from ..trust.programs import TrustedPrograms
    from ..trust.question import Question
    from ..trust.record import SignedRecord
    from .async_job import AsyncJob
    from .job_records import JobEvent, JobStatus
    from .translations import Translations

_PARALLEL_FETCHES: Final = 8
_TRANSLATION_BYTES: Final = 64 << 20
_AS_JOB: Final = {"Prefer": "respond-async"}


class Calls:
    """The methods of a client over `wire`. `Client` says what they do; the arguments are those of a client."""

    def __init__(
        self,
        wire: Wire,
        url: str | None,
        *,
        timeout_s: float | None,
        cache_dir: str | os.PathLike[str] | None,
        api_key: str | Callable[[], str] | None,
        trusted_keys: Sequence[str] | None,
        min_isolation: str | None,
        offline: bool | None,
    ) -> None:
        token = api_key if callable(api_key) else None
        settings = resolve_settings(
            url, timeout_s=timeout_s, cache_dir=cache_dir, api_key=None if callable(api_key) else api_key
        )

        policy = resolve_policy(
            settings.home, cache_dir=cache_dir, trusted_keys=trusted_keys, min_isolation=min_isolation, offline=offline
        )

        def locate() -> Address:
            if policy.offline:
                raise NotFoundError("Only a service knows this, and offline is set; ask again without it.")
            if settings.url is not None:
                return Address(settings.url)
            return self._service().address()

        def credential() -> str | None:
            # An embedded service knows its user already.
            return None if settings.url is None else given_key(token) if token is not None else settings.api_key

        self._wire = wire
        self._timeout_s = settings.timeout_s
        self._transport = Transport(wire, locate, settings.timeout_s, credential)
        self._offline = policy.offline
        self._settings = settings
        self._policy = policy
        self._keys = settings.home / "keys"

    @property
    def offline(self) -> bool:
        return self._offline

    def _service(self) -> EmbeddedService:
        return embedded_service(self._settings.home, self._settings.startup_timeout_s)

    @property
    def _is_private(self) -> bool:
        """Whether the service is one of this process's own."""
        return self._settings.url is None

    @cached_property
    def _believed_of_service(self) -> tuple[TrustedPrograms, ArtifactCache]:
        return self._connected(self._policy)

    @property
    def _trusted(self) -> TrustedPrograms:
        return self._believed_of_service[0]

    @property
    def _artifacts(self) -> ArtifactCache:
        return self._believed_of_service[1]

    @cached_property
    def _kept(self) -> TrustedPrograms | None:
        # A service of one's own would compile with what is installed here: nobody need be started to say so.
        return self._connected(replace(self._policy, offline=True))[0] if self._is_private else None

    @property
    def _authority(self) -> str:
        return self._settings.url or f"embedded:{self._settings.home}"

    def _connected(self, policy: Policy) -> tuple[TrustedPrograms, ArtifactCache]:
        with uncollected():
            from ..trust.connected import connect

        return connect(self._authority, self._transport.get, self._wire.apart, policy, is_private=self._is_private)

    @cached_property
    def _translations(self) -> Translations:
        from .translations import Translations

        ask = None if self._offline else partial(self._transport.post, "/translate")
        kept = LocalCache(self._policy.cache / "translations", _TRANSLATION_BYTES)
        return Translations(self._authority, ask, kept, self._wire.apart, build if self._is_private else None)

    async def compile(
        self,
        graph: GraphSource,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        threads: int | None = None,
        device: int | Driver | None = None,
        on_progress: Callable[[JobEvent], None] | None = None,
    ) -> Program:
        (compiled,) = await self.compile_for(graph, [target], options, on_progress=on_progress)
        return await self.load(compiled, threads=threads, device=device)

    async def compile_for(
        self,
        graph: GraphSource,
        targets: Sequence[TargetSource],
        options: OptionsSource | None = None,
        *,
        on_progress: Callable[[JobEvent], None] | None = None,
    ) -> tuple[CompiledProgram, ...]:
        await self._begin(graph)
        asked = await self._asked(graph, targets, options)
        if self._offline:
            return await self._trusted.kept(await self._question(asked))
        if on_progress is not None:
            return (await self._seen_through(asked, on_progress))[0]
        found = await self._kept_of_this_build(asked)
        return found or await self._believed(asked, await self._posted(asked, {}))

    async def tune(
        self,
        graph: GraphSource,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        on_progress: Callable[[JobEvent], None] | None = None,
    ) -> CompiledProgram:
        wanted = options_of(options).model_copy(update={"tuned": "measure"})
        (compiled,) = await self.compile_for(graph, [target], wanted, on_progress=on_progress)
        return compiled

    async def translate(self, module: StableHlo) -> Graph:
        return await self._translations.graph(module)

    async def _written(self, graph: GraphSource) -> WrittenGraph:
        return await self.translate(graph) if isinstance(graph, StableHlo) else graph

    async def _asked(self, graph: GraphSource, targets: Targets, options: OptionsSource | None) -> Asked:
        written = await self._written(graph)
        return await self._wire.apart(lambda: Asked.of(written, targets, options))

    async def _begin(self, graph: GraphSource) -> None:
        """Start a service of one's own at once where it is needed for sure: in a home that nobody compiled in before.

        What an answer takes is loaded while it starts.
        """
        self._transport.require_open()
        if isinstance(graph, Graph) and self._is_private and not self._offline and not self._keys.is_dir():
            await self._wire.apart(self._service().begin)
            await self._wire.apart(load_early)

    async def _kept_of_this_build(self, asked: Asked) -> tuple[CompiledProgram, ...] | None:
        """What the installed compiler has compiled, kept and signed by a valid key; None where one of it lacks.

        Only a graph that is one is looked up, for one target: whatever else is asked for, a service judges it.
        """
        graph = asked.graph
        # Dumps are with the service alone, and a salt of its own disowns what it has stored.
        is_plain = len(asked.targets) == 1 and not asked.options.dump_stages and not os.environ.get("KILN_SALT")
        if self._kept is None or not isinstance(graph, Graph) or not is_plain:
            return None
        from ..trust.keys import is_valid_in

        try:
            read = await self._wire.apart(lambda: Graph.model_validate_json(graph.to_json()))
            found = await self._kept.kept(await self._kept.question(asked.body, read, asked.targets, asked.options))
            records = [(await self._kept.require(each)).record for each in found]
            digests = sorted(frozenset[str]().union(*(each.artifacts for each in found)))
            is_whole = None not in [await self._artifacts.kept(digest) for digest in digests]
        except Exception:
            # Whatever is wrong with the graph or with what is kept, a service says it better.
            return None
        build_id = (await self._wire.apart(build)).build_id
        is_current = all(record.build_id == build_id and is_valid_in(self._keys, record.key) for record in records)
        # What was compiled without measurements, for want of any, is asked for again: there may be some now.
        is_settled = asked.options.tuned == "off" or all(each.tuning is not None for each in found)
        return found if is_whole and is_current and is_settled else None

    async def _required(self, compiled: CompiledProgram) -> None:
        """UntrustedArtifactError when the program is not signed; a service of one's own need not be started for it."""
        from ..trust.keys import is_valid_in

        if self._kept is not None:
            with suppress(TensorkilnError):
                if is_valid_in(self._keys, (await self._kept.require(compiled)).record.key):
                    return
        await self._trusted.require(compiled)

    async def _told(
        self, graph: GraphSource, targets: Sequence[TargetSource], options: OptionsSource | None
    ) -> tuple[tuple[CompiledProgram, ...], JobStatus | None]:
        """Like `compile_for` by a job, with how the job ended; None without a service."""
        if self._offline:
            return await self.compile_for(graph, targets, options), None
        return await self._seen_through(await self._asked(graph, targets, options), None)

    async def signature(self, digest: str) -> SignedRecord:
        return await self._trusted.signed(digest)

    async def submit(
        self,
        graph: GraphSource,
        target: TargetSource | Sequence[TargetSource] = NATIVE,
        options: OptionsSource | None = None,
    ) -> AsyncJob:
        if self._offline:
            raise RequestError("A job needs a service, and offline is set.")
        asked = await self._asked(graph, target, options)
        # A service that has to be started first has no job yet, and can be left at once.
        await self._transport.find()
        return await self._submitted(asked, None)

    async def explain(
        self,
        graph: GraphSource,
        target: TargetSource | Sequence[TargetSource] = NATIVE,
        options: OptionsSource | None = None,
    ) -> dict[str, Any]:
        from .answers import fields

        asked = await self._asked(graph, target, options)
        return fields(await self._transport.post("/explain", asked.body))

    async def stored(
        self,
        graph: GraphSource,
        target: TargetSource | Sequence[TargetSource] = NATIVE,
        options: OptionsSource | None = None,
    ) -> tuple[CompiledProgram, ...]:
        asked = await self._asked(graph, target, options)
        question = await self._question(asked)
        if self._offline:
            return await self._trusted.kept(question)
        from .answers import Explanation, read, require_stored

        # From here on, everything is read by its digest: a program that is evicted meanwhile is not compiled again.
        actions = read(Explanation, await self._transport.post("/explain", asked.body)).actions
        require_stored(actions, asked)
        signatures = [await self._trusted.signed(each.digest) for each in actions]
        return await self._trusted.answers(question, actions, signatures)

    async def load(
        self, compiled: CompiledProgram, *, threads: int | None = None, device: int | Driver | None = None
    ) -> Program:
        with uncollected():
            from ..program import Program

        await self._required(compiled)
        artifacts = await self._fetched(compiled)
        return await self._wire.apart(lambda: Program(compiled, artifacts.__getitem__, threads=threads, device=device))

    async def program(self, digest: str, *, threads: int | None = None, device: int | Driver | None = None) -> Program:
        return await self.load(await self._trusted.by_digest(digest), threads=threads, device=device)

    async def save(self, compiled: CompiledProgram, path: str | os.PathLike[str]) -> None:
        from ..trust.carried import write_signed

        signed = await self._trusted.require(compiled)
        program = await self._trusted.content(signed.record)
        artifacts = await self._fetched(compiled)
        await self._wire.apart(lambda: write_signed(path, compiled, artifacts.__getitem__, program, signed))

    async def stage(self, digest: str, name: str) -> str:
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
        from .reports import report_of

        written = None if graph is None else await self._written(graph)
        texts = None if self._offline else self.artifact
        return await report_of(self._trusted, program, texts, self._wire, graph=written, profile=profile, sizes=sizes)

    async def artifact(self, digest: str) -> bytes:
        return await self._artifacts.get(digest)

    async def validate(self, graph: GraphSource) -> dict[str, Any]:
        from .answers import fields

        written = await self._written(graph)
        body = await self._wire.apart(lambda: validate_body(written))
        return fields(await self._transport.post("/validate", body))

    async def capabilities(self) -> dict[str, Any]:
        from .answers import fields

        return fields(await self._transport.get("/capabilities"))

    async def close(self) -> None:
        await self._transport.close()

    async def _fetched(self, compiled: CompiledProgram) -> dict[str, bytes]:
        digests = sorted(compiled.artifacts)
        found = await self._wire.together(self.artifact, digests, _PARALLEL_FETCHES)
        return dict(zip(digests, found, strict=True))

    async def _submitted(self, asked: Asked, deadline: Deadline | None) -> AsyncJob:
        """A job that somebody knows of: who leaves before it is accepted gives it up."""
        from .async_job import AsyncJob

        return await self._wire.wholly(self._accepted(asked, deadline), AsyncJob.give_up)

    async def _accepted(self, asked: Asked, deadline: Deadline | None) -> AsyncJob:
        from .answers import read
        from .async_job import AsyncJob
        from .job_records import JobStatus

        # A request that is sent again, because its answer was lost, gets the job that it has made already.
        headers = {**_AS_JOB, "Idempotency-Key": secrets.token_hex(16)}
        accepted = read(JobStatus, await self._posted(asked, headers, deadline))
        return AsyncJob(accepted, self._transport, lambda content: self._believed(asked, content), len(asked.targets))

    async def _posted(self, asked: Asked, headers: Mapping[str, str], deadline: Deadline | None = None) -> bytes:
        programs = len(asked.targets)
        return await self._transport.post("/compile", asked.body, headers, programs=programs, deadline=deadline)

    async def _seen_through(
        self, asked: Asked, on_progress: Callable[[JobEvent], None] | None
    ) -> tuple[tuple[CompiledProgram, ...], JobStatus]:
        """A job that is given up when its caller leaves, by Ctrl-C for one, or has no more time."""
        # The start of a service has a time of its own, and no job yet: it can be left at once.
        await self._transport.find()
        deadline = Deadline.after(self._timeout_s)
        job = await self._submitted(asked, deadline)
        try:
            return await job.wait_until(deadline, on_progress), job.latest
        except BaseException:
            if not job.latest.is_over:
                await job.give_up()
            raise

    async def _believed(self, asked: Asked, content: bytes) -> tuple[CompiledProgram, ...]:
        """The programs of an answer, if they are signed and those that were asked for."""
        from .answers import Programs, read, require_each

        answer = await self._wire.apart(lambda: read(Programs, content))
        require_each(answer.programs, asked)
        return await self._trusted.answers(await self._question(asked), answer.programs, answer.signatures)

    async def _question(self, asked: Asked) -> Question:
        return await self._trusted.question(asked.body, asked.graph, asked.targets, asked.options)
