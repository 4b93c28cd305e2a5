"""A farm: services, workers, and a store on a disk that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from tests.service.forked import forked_services

from .members import Member, free_port


class Farm:
    """Started by `start`, or as a context. `settings` are KILN_* variables of all, by their names in lower case.

    With `fails`, compilers fail as graphs say. A worker does one order at a time: killing the group of one is losing
    one place to compile at. All are forked from a process that has loaded them, unless they are to start `anew`.
    """

    def __init__(
        self,
        home: Path,
        *,
        services: int = 2,
        workers: int = 4,
        fails: bool = False,
        anew: bool = False,
        **settings: Any,
    ) -> None:
        forked = None if anew else forked_services()
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.store = home / "store"
        shared = {"KILN_HOME": str(home), "KILN_STORE": str(self.store), "KILN_FARM": "1"}
        shared |= {f"KILN_{name.upper()}": str(value) for name, value in settings.items()}
        ports = [free_port() for _ in range(services)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.services = [
            Member(
                "tests.service.failing" if fails else "service",
                ["--port", str(port)],
                shared,
                home / f"service-{number}.log",
                forked,
            )
            for number, port in enumerate(ports, 1)
        ]
        self.workers = [
            Member(
                "tests.farm.failing_worker" if fails else "service.worker",
                [],
                {**shared, "KILN_WORKER": f"worker-{number}", "KILN_CONCURRENCY": "1"},
                home / f"worker-{number}.log",
                forked,
            )
            for number in range(1, workers + 1)
        ]

    def start(self) -> None:
        for member in (*self.services, *self.workers):
            member.start()
        for member in (*self.services, *self.workers):
            member.await_ready()

    def close(self) -> None:
        for member in (*self.services, *self.workers):
            member.kill()

    def stop(self) -> list[int]:
        """Stop everything as an orchestrator does; the exit statuses of services and workers."""
        return [member.stop() for member in (*self.services, *self.workers)]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
