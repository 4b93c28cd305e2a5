"""The client that waits."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..immediate import run
from ..request import GraphSource
from ..wire import BlockingWire, Wire
from .asked import NATIVE, OptionsSource, TargetSource
from .calls import Calls

if TYPE_CHECKING:
    from ..graph import Graph
    from ..program import Program
    from ..report import Report
    from ..runtime.cuda import Driver
    from ..runtime.profile import ItemProfile
    from ..spec import CompiledProgram
    from ..stablehlo import StableHlo
    from ..trust.record import SignedRecord
    from .job import Job
    from .job_records import JobEvent
    from .outcome import LaterGraph, Outcome


class Client:
    """Compiles graphs at the service at `url`, or in an embedded service (a child process) when there is no URL.

    `url`, `timeout_s` (seconds that one call may take, retries included) and `cache_dir` default to what
    `tensorkiln.settings` says. A client may be used by several threads; its programs outlive it.

    `api_key` is sent to a service at a URL: an API key, a token, or a function that gives the token of each request.

    Only programs with a valid signature are loaded: by one of `trusted_keys` (base64url, or files of JSON Web Keys), or
    by the keys that the service showed at first use; compiled with `min_isolation` at least. `offline` uses what was
    compiled and loaded before, and no service: NotFoundError for what is not kept, and for what only a service knows.
    `tensorkiln.trust.policy` names their defaults.

    Use it in a `with` block, or `close` it; one that is forgotten closes its connections when it is collected.

    Every method raises a subclass of `TensorkilnError`: the one that the service describes, or `UnavailableError` when
    no service answers.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_s: float | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        api_key: str | Callable[[], str] | None = None,
        trusted_keys: Sequence[str] | None = None,
        min_isolation: str | None = None,
        offline: bool | None = None,
    ) -> None:
        def make(wire: Wire) -> Calls:
            return Calls(
                wire,
                url,
                timeout_s=timeout_s,
                cache_dir=cache_dir,
                api_key=api_key,
                trusted_keys=trusted_keys,
                min_isolation=min_isolation,
                offline=offline,
            )

        self._make = make
        self._calls = calls = make(BlockingWire())
        weakref.finalize(self, lambda: run(calls.close()))

    @property
    def offline(self) -> bool:
        """Whether it uses what is kept, and no service."""
        return self._calls.offline

    def compile(
        self,
        graph: GraphSource,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        threads: int | None = None,
        device: int | Driver | None = None,
        on_progress: Callable[[JobEvent], None] | None = None,
    ) -> Program:
        """The program of `graph` for `target`, ready to be called with arrays.

        JSON (text, bytes or an object) is validated by the service. `cpu:native` means the CPU of this machine.
        `threads` is the number of threads that a CPU program may use, `device` the GPU that a CUDA program runs on;
        None leaves it to the program.

        With `on_progress` the compile is a job, and that is called with what happens to it. When it raises, on Ctrl-C,
        and after `timeout_s`, the job is cancelled at the service.
        """
        return run(self._calls.compile(graph, target, options, threads=threads, device=device, on_progress=on_progress))

    def compile_many(
        self,
        graphs: Iterable[LaterGraph],
        targets: Sequence[TargetSource],
        options: OptionsSource | None = None,
        *,
        concurrency: int = 8,
        from_store: bool = False,
    ) -> Generator[Outcome]:
        """What comes of every graph for every target, as it comes; `concurrency` compiles (1 to 64) are under way.

        A graph may be a function that gives it when its turn comes. One that fails ends none of the others: its outcome
        has the error. When the generator is closed, and on Ctrl-C, what is under way is cancelled at the service.
        With `from_store` nothing is compiled: each is as from `stored`.
        """
        from ..async_wire import AsyncWire
        from .batch import outcomes
        from .portal import iterate_in_thread

        calls = self._make(AsyncWire())
        found = outcomes(calls, graphs, targets, options, concurrency, from_store, self._require_open)
        return iterate_in_thread(found, calls.close)

    def tune(
        self,
        graph: GraphSource,
        target: TargetSource = NATIVE,
        options: OptionsSource | None = None,
        *,
        on_progress: Callable[[JobEvent], None] | None = None,
    ) -> CompiledProgram:
        """The program whose schedules are the fastest of those that were timed; its `tuning` says what was measured.

        The service times them, once, on its own CPU: UnsupportedGraphError when the target is another. From then on a
        compile with the option `tuned="prefer"` gives this program to everybody who shares the service's store.
        `on_progress` as for `compile`.
        """
        return run(self._calls.tune(graph, target, options, on_progress=on_progress))

    def submit(
        self,
        graph: GraphSource,
        target: TargetSource | Sequence[TargetSource] = NATIVE,
        options: OptionsSource | None = None,
    ) -> Job:
        """A job that compiles `graph` for a target or several. Once this returns, the service will see it through."""
        from .job import Job

        return Job(run(self._calls.submit(graph, target, options)))

    def explain(
        self,
        graph: GraphSource,
        target: TargetSource | Sequence[TargetSource] = NATIVE,
        options: OptionsSource | None = None,
    ) -> dict[str, Any]:
        """What a compile would find in the service's store, and why not more. Nothing is compiled."""
        return run(self._calls.explain(graph, target, options))

    def stored(
        self,
        graph: GraphSource,
        target: TargetSource | Sequence[TargetSource] = NATIVE,
        options: OptionsSource | None = None,
    ) -> tuple[CompiledProgram, ...]:
        """The compiled program for each target, in order, out of the service's store. Nothing is compiled for it.

        NotFoundError when one is not there, also when it goes while this looks; `details.cache` says why where the
        service does.
        """
        return run(self._calls.stored(graph, target, options))

    def compile_for(
        self,
        graph: GraphSource,
        targets: Sequence[TargetSource],
        options: OptionsSource | None = None,
        *,
        on_progress: Callable[[JobEvent], None] | None = None,
    ) -> tuple[CompiledProgram, ...]:
        """The compiled program for each target, in order, from one request; `on_progress` as for `compile`.

        They are records, for any machine: `load` makes one callable on the machine that it was compiled for.
        """
        return run(self._calls.compile_for(graph, targets, options, on_progress=on_progress))

    def load(
        self, compiled: CompiledProgram, *, threads: int | None = None, device: int | Driver | None = None
    ) -> Program:
        """Fetch and verify the artifacts of a compiled program and make it callable.

        `DeviceError` when it was compiled for another kind of machine; a program for a GPU finds that out when called.
        """
        return run(self._calls.load(compiled, threads=threads, device=device))

    def program(self, digest: str, *, threads: int | None = None, device: int | Driver | None = None) -> Program:
        """A program that was compiled before, by its digest, with the canonical names of its symbols and vars."""
        return run(self._calls.program(digest, threads=threads, device=device))

    def signature(self, digest: str) -> SignedRecord:
        """The signed record of a compile, by the digest of its program."""
        return run(self._calls.signature(digest))

    def save(self, compiled: CompiledProgram, path: str | os.PathLike[str]) -> None:
        """Write a program and all that it needs as a `.kiln` file, and beside it its signature, as `<path>.sig`.

        Each file appears complete or not at all. `Program.from_bundle` reads them. OSError when they cannot be written.
        """
        run(self._calls.save(compiled, path))

    def stage(self, digest: str, name: str) -> str:
        """The IR text of one stage of a program that was compiled with `dump_stages`."""
        return run(self._calls.stage(digest, name))

    def report(
        self,
        program: CompiledProgram | str,
        *,
        graph: GraphSource | None = None,
        profile: Sequence[ItemProfile] = (),
        sizes: Mapping[str, int] | None = None,
    ) -> Report:
        """A page about a compiled program, or one that is named by its digest: `save` writes it as one HTML file.

        It has the texts of the stages if the program was compiled with `dump_stages`, and its signature. `graph` is
        what it was compiled from, whose nodes the page shows then, `profile` what `Program.profile` gave where
        the symbols had the values `sizes`. RequestError when one of these is of another program, or a size is missing.
        """
        return run(self._calls.report(program, graph=graph, profile=profile, sizes=sizes))

    def artifact(self, digest: str) -> bytes:
        """The bytes with this SHA-256."""
        return run(self._calls.artifact(digest))

    def translate(self, module: StableHlo) -> Graph:
        """The graph that the service makes of a module. A module may also stand wherever a graph is asked for.

        UnsupportedGraphError names the operation that has no translation. What was translated is kept for `offline`.
        """
        return run(self._calls.translate(module))

    def validate(self, graph: GraphSource) -> dict[str, Any]:
        """What the service says about a valid graph; an invalid one raises its error."""
        return run(self._calls.validate(graph))

    def capabilities(self) -> dict[str, Any]:
        """What the service can do: targets, node kinds, dtypes, limits, its build."""
        return run(self._calls.capabilities())

    def close(self) -> None:
        """Close the connections. The embedded service goes on for other clients and ends with this process.

        A call that is under way meanwhile raises `UnavailableError`.
        """
        run(self._calls.close())

    def _require_open(self) -> None:
        # A part of `Calls` that is no part of a client.
        self._calls._transport.require_open()  # pyright: ignore[reportPrivateUsage]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
