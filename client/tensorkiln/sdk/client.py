"""The blocking client."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..immediate import run
from ..request import GraphSource
from ..runner import BlockingRunner
from .asked import NATIVE, OptionsSource, Targets
from .batch import BatchCalls
from .blocking import Blocking, blocking, iterating

if TYPE_CHECKING:
    from .job import Job


class _BlockingCalls(BatchCalls):
    _runner = BlockingRunner()


class Client(Blocking[BatchCalls]):
    """Compiles graphs at the service at `url`, or in an embedded service (a child process) when there is no URL.

    `url`, `timeout_s` (seconds that one call may take, retries included) and `cache_dir` default to the values of
    `tensorkiln.settings`. Several threads may use a client; its programs outlive it.

    `api_key` is sent to a service at a URL: an API key, a token, or a function that returns the token of each request.

    A program is loaded only if its signature is valid: by one of `trusted_keys` (base64url, or files of JSON Web Keys),
    or by a key that the service presented at first use; compiled with `min_isolation` at least. With `offline`, the
    client uses only its cache, and no service: NotFoundError for a program that is not cached, and for methods that
    need a service. `tensorkiln.trust.policy` has the defaults.

    Use it in a `with` block, or `close` it; otherwise its connections are closed when it is garbage-collected.

    Every method raises a subclass of `TensorkilnError`: the error that the service reports, or `UnavailableError` when
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
        calls = _BlockingCalls(
            url,
            timeout_s=timeout_s,
            cache_dir=cache_dir,
            api_key=api_key,
            trusted_keys=trusted_keys,
            min_isolation=min_isolation,
            offline=offline,
        )
        super().__init__(calls)
        forgotten = weakref.finalize(self, calls._transport.abandon)  # pyright: ignore[reportPrivateUsage]
        # Process exit closes the connections anyway; closing them here would make running calls report errors.
        forgotten.atexit = False

    @property
    def offline(self) -> bool:
        """Whether the client uses the cache only, and no service."""
        return self._inner.offline

    def submit(self, graph: GraphSource, target: Targets = NATIVE, options: OptionsSource | None = None) -> Job:
        """Submit a job that compiles `graph` for one target or several. It runs even if the client leaves."""
        from .job import Job

        return Job(run(self._inner.submit(graph, target, options)))

    compile = blocking(BatchCalls.compile)
    compile_for = blocking(BatchCalls.compile_for)
    compile_many = iterating(BatchCalls.compile_many)
    tune = blocking(BatchCalls.tune)
    explain = blocking(BatchCalls.explain)
    stored = blocking(BatchCalls.stored)
    load = blocking(BatchCalls.load)
    program = blocking(BatchCalls.program)
    signature = blocking(BatchCalls.signature)
    save = blocking(BatchCalls.save)
    stage = blocking(BatchCalls.stage)
    report = blocking(BatchCalls.report)
    artifact = blocking(BatchCalls.artifact)
    translate = blocking(BatchCalls.translate)
    validate = blocking(BatchCalls.validate)
    capabilities = blocking(BatchCalls.capabilities)
    close = blocking(BatchCalls.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
