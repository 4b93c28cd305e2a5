"""A real service in a process of its own, and what is in its store."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx2

from service.sandbox.spawn import READING
from tests.forked import Process, suits
from tests.sandbox.processes import alive, name, state
from tests.service.failing import failing
from tests.service.forked import forked_services

JSON = {"Content-Type": "application/json"}
TIGHT: dict[str, Any] = {
    "compile_deadline_s": 5,
    "compile_memory_mib": 256,
    "compile_file_mib": 8,
    "compile_output_mib": 32,
}
"""Settings with limits that a graph which fails meets soon."""


class Server:
    """`python -m service` on `port`, or a free one, with its store in `home` and KILN_* variables from `settings`.

    It is started at `niceness`, in the `cgroup` of its class, and may open so many `files`. One that `fails` has a
    compiler that fails as graphs say. It is forked from a process that has loaded it, unless it is to start `anew`, as
    for tests of what a process has in its memory, or by another `python`, which takes this tree's modules, as in
    `tests.faults.interpreters`.
    """

    cgroup: Path | None = None

    def __init__(
        self,
        home: Path,
        *,
        port: int = 0,
        niceness: int = 0,
        files: int = 0,
        workers: int = 1,
        fails: bool = False,
        anew: bool = False,
        python: str = sys.executable,
        **settings: Any,
    ) -> None:
        self.home = home
        self._log = home / "log"
        home.mkdir(exist_ok=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        variables = {f"KILN_{name.upper()}": str(value) for name, value in settings.items()}
        module = "tests.service.failing" if fails else "service"
        environment = {**clean, "KILN_HOME": str(home), **variables, **_modules(python)}
        arguments = ["--port", str(port), "--workers", str(workers)]
        self.process: Process | subprocess.Popen[str]
        with self._log.open("ab") as log:
            if anew or python != sys.executable or self.cgroup is not None or not suits(environment):
                self.process = subprocess.Popen(
                    [python, "-W", "error", "-m", module, *arguments],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=environment,
                    preexec_fn=lambda: _limited(niceness, files, self.cgroup),
                )
            else:
                self.process = forked_services().start(
                    *(module, *arguments),
                    cwd=Path.cwd(),
                    env=environment,
                    stderr=log.fileno(),
                    files=files,
                    niceness=niceness,
                )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("tensorkiln is ready on http://127.0.0.1:"), self.log()
        self.url = line.split()[-1]
        # Plain answers, unless a test asks for others.
        self.http = httpx2.Client(base_url=self.url, timeout=60, headers={"Accept-Encoding": "identity"}, verify=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def fork_servers(self) -> frozenset[int]:
        return frozenset(children(self.pid))

    @property
    def fork_server(self) -> int:
        """The one whose jobs compile."""
        (pid,) = self.fork_servers - {self.reader}
        return pid

    @property
    def reader(self) -> int:
        """The fork server whose jobs read requests and write answers."""
        (pid,) = (pid for pid in self.fork_servers if READING.encode() in Path(f"/proc/{pid}/cmdline").read_bytes())
        return pid

    def jobs(self, kind: str = "") -> list[int]:
        """The processes of its jobs of this kind, or of any."""
        return [job for fork_server in self.fork_servers for job in jobs(fork_server, kind)]

    def at_work(self, kind: str = "compile") -> int:
        """The process of a job of this kind, once there is one."""
        while not (found := self.jobs(kind)):
            time.sleep(0.005)
        return found[0]

    def stopped(self) -> int:
        """The process of a compile that has stopped itself, once there is one."""
        while not (found := [job for job in self.jobs("compile") if state(job) == "T"]):
            time.sleep(0.005)
        return found[0]

    def log(self) -> str:
        return self._log.read_text()

    def post(self, path: str, body: bytes, fails: str | None = None, **headers: str) -> httpx2.Response:
        if fails is not None:
            body = failing(body, fails)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, content=body, headers={**JSON, **named})

    def compile(self, body: bytes, fails: str | None = None) -> httpx2.Response:
        return self.post("/compile", body, fails)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _modules(python: str) -> dict[str, str]:
    root = Path(__file__).parents[2]
    return {} if python == sys.executable else {"PYTHONPATH": f"{root / 'client'}{os.pathsep}{root}"}


def _limited(niceness: int, files: int, cgroup: Path | None) -> None:
    if niceness:
        os.nice(niceness)
    if cgroup is not None:
        (cgroup / "cgroup.procs").write_text("0")
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def children(pid: int) -> list[int]:
    """The direct children of a process, by whichever of its threads; FileNotFoundError when it is gone."""
    found: list[int] = []
    for thread in sorted(Path(f"/proc/{pid}/task").iterdir()):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread is over
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def jobs(fork_server: int, kind: str = "") -> list[int]:
    """The processes that a fork server has forked for jobs of this kind, or of any."""
    return [child for child in children(fork_server) if name(child).startswith(f"kiln {kind}")]


def go_on(pid: int, answer: Future[Any]) -> None:
    """Have a compile that has stopped itself go on until there is the answer: it stops wherever its graph says so."""
    while not answer.done():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)


def await_end(pid: int) -> None:
    """Wait until the process has ended; one that never does is for the time-out of the test."""
    while alive(pid):
        time.sleep(0.01)


def cache(response: httpx2.Response) -> tuple[str, str]:
    """Status and reason of the cache for the only program of an answer."""
    assert response.status_code == 200, response.text
    (program,) = response.json()["programs"]
    return program["cache"]["status"], program["cache"]["reason"]


_AT_REST_WITHIN_S = 60.0


def at_rest(store: Path) -> set[Path]:
    """Every file of a store, once no compile is at an attempt, no job is open and nothing is being written.

    Attempts and jobs are given back behind the answer.
    """
    end = time.monotonic() + _AT_REST_WITHIN_S
    while time.monotonic() < end:
        try:
            files = {path for path in store.rglob("*") if path.is_file()}
            if not any(_is_under_way(path, store) for path in files):
                return files
        except FileNotFoundError:  # deleted since it was listed
            continue
        time.sleep(0.01)
    raise AssertionError("something is under way yet")


def _is_under_way(path: Path, store: Path) -> bool:
    # Of a file that is being written the name has a # in it.
    if "#" in path.name or path.parent == store / "jobs" / "open":
        return True
    return store / "crashes" in path.parents and b'"holder"' in path.read_bytes()
