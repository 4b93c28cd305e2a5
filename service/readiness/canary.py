"""Compile a tiny graph in a process of the sandbox, without the store."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Final

from service.sandbox.compile_header import CompileHeader
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from tensorkiln.errors import TensorkilnError

from .check import Failure

LIMITS: Final = Limits(deadline_s=5.0, memory_mib=256, file_mib=1)
AT_START: Final = replace(LIMITS, deadline_s=60.0)
"""For the first check of a service, which is slow on a machine where much starts at once."""
_WHAT: Final = "a small graph is not compiled"


class Canary:
    """Compiles in `sandbox`, and compares the bytes of every compile with those of the first."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._first: tuple[str, ...] = ()

    async def look(self, limits: Limits = LIMITS) -> Failure | None:
        """Compile the graph; return why that fails, or None."""
        try:
            answer = await self._sandbox.run("trial", Message(), limits)
            artifacts = CompileHeader.of(answer.header).artifacts
        except TensorkilnError as error:
            return Failure.of(_WHAT, error)
        given = {name: sha256(content).hexdigest() for name, content in answer.parts.items()}
        if not artifacts or any(given.get(f"artifact:{digest}") != digest for digest in artifacts):
            wrong = "a compile returns bytes that do not match its digests"
            return Failure(wrong, wrong)
        self._first = self._first or artifacts
        if artifacts != self._first:
            wrong = "a small graph is compiled to other bytes than before"
            return Failure(wrong, f"{wrong}: {', '.join(artifacts)} in place of {', '.join(self._first)}")
        return None


class Ping:
    """Checks that processes can be forked, in a sandbox that compiles nothing."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def look(self, limits: Limits = LIMITS) -> Failure | None:
        """Fork a process; return why that fails, or None."""
        try:
            await self._sandbox.run("ping", Message(), limits)
        except TensorkilnError as error:
            return Failure.of("no process is forked", error)
        return None
