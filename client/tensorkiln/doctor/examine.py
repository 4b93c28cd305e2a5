"""All checks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import RequestError
from ..settings import resolve_settings
from ..trust.policy import resolve_policy
from . import files, gpu, packages, processor, service
from .finding import Finding, fail


def examine(url: str | None = None, timeout_s: float | None = None) -> Iterator[Finding]:
    """Check this machine and the service of a `Client(url)`; starts an embedded service if there is no URL."""
    yield from packages.look()
    yield from processor.look()
    yield from gpu.look()
    try:
        settings = resolve_settings(url, timeout_s=timeout_s)
        policy = resolve_policy(settings.home)
    except RequestError as error:
        yield fail("settings", error.message, "correct the variable or the option")
        return
    yield from files.look(policy)
    yield from service.look(settings, policy)
