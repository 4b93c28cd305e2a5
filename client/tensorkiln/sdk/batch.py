"""Many compiles at once."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from ..errors import RequestError, TensorkilnError
from ..target import Target
from .asked import OptionsSource, TargetSource
from .calls import Calls
from .connection import called

if TYPE_CHECKING:
    import asyncio

    from .job_records import JobStatus
    from .outcome import LaterGraph, Outcome

_GIVES: Final = "The function that gives the graph"
MAX_CONCURRENCY: Final = 64
"""Each running compile holds one connection for its events, and opens a second at times."""


class BatchCalls(Calls):
    """`compile_many` of a client, in an event loop."""

    async def compile_many(
        self,
        graphs: Iterable[LaterGraph],
        targets: Sequence[TargetSource],
        options: OptionsSource | None = None,
        *,
        concurrency: int = 8,
        from_store: bool = False,
    ) -> AsyncGenerator[Outcome]:
        """Yield the outcome of every graph for every target, as each completes; run `concurrency` (1 to 64) at a time.

        A graph may be a function that returns it, called when its turn comes. A failure does not stop the others: its
        outcome has the error. Closing the generator, or Ctrl-C, cancels the running compiles at the service.
        With `from_store` nothing is compiled: programs are read as by `stored`. RequestError without a target, for an
        unknown target, and for a `concurrency` out of range.
        """
        found = self._outcomes(graphs, targets, options, concurrency, from_store)
        async with aclosing(self._runner.iterate(found)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def _outcomes(
        self,
        graphs: Iterable[LaterGraph],
        targets: Sequence[TargetSource],
        options: OptionsSource | None,
        concurrency: int,
        from_store: bool,
    ) -> AsyncGenerator[Outcome]:
        import asyncio

        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise RequestError(f"The concurrency is {concurrency}: give a number from 1 to {MAX_CONCURRENCY}.")
        parsed = [Target.parse(target) for target in targets]
        if not parsed:
            raise RequestError("compile needs at least one target.")
        waiting = _turns(graphs, len(parsed))
        running: set[asyncio.Task[Outcome]] = set()
        try:
            while True:
                # In a thread: the caller's generator may be slow, and may call this client.
                while len(running) < concurrency and (turn := await asyncio.to_thread(next, waiting, None)) is not None:
                    self._transport.require_open()
                    place, graph, target = turn
                    work = self._outcome(place, graph, target, parsed[target], options, from_store)
                    running.add(asyncio.create_task(work))
                if not running:
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _outcome(
        self,
        place: int,
        graph: LaterGraph,
        position: int,
        target: Target,
        options: OptionsSource | None,
        from_store: bool,
    ) -> Outcome:
        from .outcome import Outcome

        began = time.monotonic()
        status: JobStatus | None = None
        compiled, error = None, None
        try:
            source = await self._runner.offload(lambda: called(_GIVES, graph)) if callable(graph) else graph
            if from_store:
                (compiled,) = await self.stored(source, target, options)
            else:
                (compiled,), status = await self._compiled_by_job(source, [target], options)
        except TensorkilnError as failure:
            error = failure
        seconds = time.monotonic() - began
        if status is None:
            return Outcome(place, position, compiled, error, seconds)
        return Outcome(place, position, compiled, error, seconds, status.queue_ms, status.run_ms, status.attempt)


def _turns(graphs: Iterable[LaterGraph], targets: int) -> Iterator[tuple[int, LaterGraph, int]]:
    for place, graph in enumerate(graphs):
        for target in range(targets):
            yield place, graph, target
