"""Many compiles at once, in an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Final

from ..errors import RequestError, TensorkilnError
from ..request import GraphSource
from ..target import Target
from .asked import OptionsSource, TargetSource
from .calls import Calls
from .job_records import JobStatus
from .outcome import LaterGraph, Outcome

MAX_CONCURRENCY: Final = 64
"""Every compile under way has a connection that its events come by, and takes another now and then."""


async def outcomes(
    calls: Calls,
    graphs: Iterable[LaterGraph],
    targets: Sequence[TargetSource],
    options: OptionsSource | None,
    concurrency: int,
    from_store: bool,
    require_open: Callable[[], None],
) -> AsyncGenerator[Outcome]:
    """What comes of every graph for every target, as it comes; `concurrency` compiles are under way at once.

    A graph is asked for when its turn comes. With `from_store` nothing is compiled. When the generator is closed, what
    is under way is cancelled, at the service too. RequestError for a target that does not exist, and what
    `require_open` raises before one is asked for.
    """
    if not 1 <= concurrency <= MAX_CONCURRENCY:
        raise RequestError(f"The concurrency is {concurrency}: give a number from 1 to {MAX_CONCURRENCY}.")
    parsed = [Target.parse(target) for target in targets]
    if not parsed:
        raise RequestError("compile needs at least one target.")
    waiting = _turns(graphs, len(parsed))
    running: set[asyncio.Task[Outcome]] = set()
    try:
        while True:
            while len(running) < concurrency and (turn := next(waiting, None)) is not None:
                require_open()
                place, graph, target = turn
                work = _outcome(calls, place, graph, target, parsed[target], options, from_store)
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


def _turns(graphs: Iterable[LaterGraph], targets: int) -> Iterator[tuple[int, LaterGraph, int]]:
    for place, graph in enumerate(graphs):
        for target in range(targets):
            yield place, graph, target


def _given(graph: Callable[[], GraphSource]) -> GraphSource:
    """The graph of a function of the caller's, which may raise anything; RequestError for what is no error of ours."""
    try:
        return graph()
    except TensorkilnError:
        raise
    except Exception as failure:
        raise RequestError(f"The function that gives the graph raised {type(failure).__name__}: {failure}") from failure


async def _outcome(
    calls: Calls,
    place: int,
    graph: LaterGraph,
    position: int,
    target: Target,
    options: OptionsSource | None,
    from_store: bool,
) -> Outcome:
    began = time.monotonic()
    status: JobStatus | None = None
    compiled, error = None, None
    try:
        source = await asyncio.to_thread(_given, graph) if callable(graph) else graph
        if from_store:
            (compiled,) = await calls.stored(source, target, options)
        else:
            # A part of `Calls` that is no part of a client.
            (compiled,), status = await calls._told(source, [target], options)  # pyright: ignore[reportPrivateUsage]
    except TensorkilnError as failure:
        error = failure
    seconds = time.monotonic() - began
    if status is None:
        return Outcome(place, position, compiled, error, seconds)
    return Outcome(place, position, compiled, error, seconds, status.queue_ms, status.run_ms, status.attempt)
