"""Commands of Python's that need not load what they run: each is forked from a process that has loaded it.

To load the SDK takes a second of a processor, a service four, and what most commands do a tenth of that. A forked one
is a process like any other, with arguments, an environment, a directory and streams of its own, and ends as Python
ends.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import resource
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any, Final, Self

ROOT: Final = Path(__file__).parents[1]
_MAX_REQUEST: Final = 1 << 17
_WORDS: Final = "-" * 2000
"""Room for the words of a command where the kernel keeps those of the process that it is forked from."""


class Process:
    """A forked process, with the methods of `subprocess.Popen`. What it prints is in `stdout`, unless that is given."""

    returncode: int | None
    stdin: IO[bytes] | None = None
    stdout: IO[Any] | None = None

    def __init__(self, pid: int, pidfd: int, status: int, stdout: int | None) -> None:
        self.pid, self.returncode = pid, None
        self._pidfd, self._status = pidfd, status
        if stdout is not None:
            self.stdout = os.fdopen(stdout)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it has ended. TimeoutExpired when it has not after `timeout` seconds."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"the process {self.pid}", timeout or 0)
            self.returncode = int(os.read(self._status, 64))
            os.close(self._status)
            os.close(self._pidfd)
        return self.returncode

    def poll(self) -> int | None:
        """The exit status; None as long as it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """A signal, unless it has ended."""
        if self.poll() is None:
            # It may end before the signal arrives.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forked:
    """Runs `python -W error -m MODULE` in copies of a process that has loaded the modules `loaded`.

    `variables` are what that process has in its environment besides, and the copies have not.
    """

    def __init__(self, *loaded: str, **variables: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.forked", str(number), *loaded, _WORDS],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **variables},
                pass_fds=[number],
            )
        self._socket = ours
        self._turn = Lock()

    def start(
        self,
        module: str,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str],
        stderr: int,
        stdout: int = subprocess.PIPE,
        stdin: int | None = None,
        file_bytes: int = resource.RLIM_INFINITY,
        files: int = 0,
        niceness: int = 0,
        has_session: bool = False,
    ) -> Process:
        """`python -W error -m MODULE ARGUMENTS`, which runs; without `stdin` it has nothing to read.

        No file that it writes has more than `file_bytes`, and it may open so many `files`, if that is not 0.
        `env` must have the variables that Python looks at when it starts as they are here.
        """
        assert suits(env)
        printing = os.pipe() if stdout == subprocess.PIPE else None
        ended, ending = os.pipe()
        output = stdout if printing is None else printing[1]
        request = {
            "module": module,
            "arguments": arguments,
            "directory": str(cwd),
            "environment": dict(env),
            "file_bytes": file_bytes,
            "files": files,
            "niceness": niceness,
            "has_session": has_session,
        }
        with self._turn:
            streams = [output, stderr] if stdin is None else [output, stderr, stdin]
            socket.send_fds(self._socket, [json.dumps(request).encode()], [*streams, ending])
            pid, (pidfd,), *_ = socket.recv_fds(self._socket, 64, 1)
        os.close(ending)
        if printing is not None:
            os.close(printing[1])
        return Process(int(pid), pidfd, ended, None if printing is None else printing[0])

    def run(
        self,
        module: str,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str],
        stdout: int = subprocess.PIPE,
        file_bytes: int = resource.RLIM_INFINITY,
    ) -> subprocess.CompletedProcess[str]:
        """`python -W error -m MODULE ARGUMENTS` when it has ended; what it writes to another `stdout` is not read here.

        No file that it writes has more than `file_bytes`. Python looks at variables of its own when it starts: with
        others than those of here the command starts anew.
        """
        if not suits(env):
            command = [sys.executable, "-W", "error", "-m", module, *arguments]
            assert file_bytes == resource.RLIM_INFINITY
            return subprocess.run(
                command, cwd=cwd, env=env, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False
            )
        err, complained = os.pipe()
        with open(err) as error, ThreadPoolExecutor(1) as reader:
            process = self.start(
                module, *arguments, cwd=cwd, env=env, stderr=complained, stdout=stdout, file_bytes=file_bytes
            )
            os.close(complained)
            try:
                said = reader.submit(error.read)
                printed = ""
                if process.stdout is not None:
                    with process.stdout:
                        printed = process.stdout.read()
                texts = printed, said.result()
            except BaseException:
                process.kill()
                raise
            finally:
                status = process.wait()
        return subprocess.CompletedProcess([module, *arguments], status, *texts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._process.wait(60)


def suits(environment: Mapping[str, str]) -> bool:
    """Whether the variables that Python looks at when it starts are as they are here."""
    return _of_python(environment) == _of_python(os.environ)


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("PYTHON") and value}


def call(words: Sequence[str]) -> None:
    """Have `/proc/PID/cmdline` of this process say these words, as far as there is room."""
    # proc(5): the fields 48 and 49 say where the words of a process begin and end.
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    text = "\0".join(words).encode()[: end - begin - 1]
    ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


class _Forks:
    """The loop of the process that makes copies of itself, as `requests` come in."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._running: dict[int, tuple[int, int]] = {}
        """The process and the pipe for its exit status, by the file of each process."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)

    def serve(self) -> tuple[dict[str, Any], list[int]] | None:
        """In each copy what it is asked for, and its streams; None in this process, when no more are asked for."""
        while True:
            for key, _ in self._selector.select():
                if key.fd in self._running:
                    self._reap(key.fd)
                    continue
                request, descriptors, *_ = socket.recv_fds(self._requests, _MAX_REQUEST, 4)
                if not request:
                    self._end()
                    self._requests.close()
                    return None
                *streams, ending = descriptors
                pid = os.fork()
                if pid == 0:
                    self._selector.close()
                    self._requests.detach()
                    return json.loads(request), streams
                for stream in streams:
                    os.close(stream)
                pidfd = os.pidfd_open(pid)
                self._running[pidfd] = pid, ending
                self._selector.register(pidfd, selectors.EVENT_READ)
                socket.send_fds(self._requests, [b"%d" % pid], [pidfd])

    def _reap(self, pidfd: int) -> None:
        pid, ending = self._running.pop(pidfd)
        self._selector.unregister(pidfd)
        os.close(pidfd)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):  # nobody waits for it
            os.write(ending, b"%d" % status)
        os.close(ending)

    def _end(self) -> None:
        """Kill the processes that still run when the test process has ended."""
        for pidfd in tuple(self._running):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            self._reap(pidfd)


def _become(request: dict[str, Any], streams: list[int]) -> str:
    """Make this process one as it was asked for; the module that it is to run."""
    for number, stream in zip((1, 2, 0), streams, strict=False):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    module: str = request["module"]
    if request["has_session"]:
        os.setsid()
    os.nice(request["niceness"])
    for kind, most in (resource.RLIMIT_FSIZE, request["file_bytes"]), (resource.RLIMIT_NOFILE, request["files"]):
        if most:
            resource.setrlimit(kind, (most, most))
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0], sys.argv[1:] = request["directory"], request["arguments"]
    call([sys.executable, "-W", "error", "-m", module, *request["arguments"]])
    # Python warns of a module that it is to run and that somebody has loaded.
    is_package = hasattr(sys.modules.get(module), "__path__")
    sys.modules.pop(f"{module}.__main__" if is_package else module, None)
    return module


def _main() -> None:
    for name in sys.argv[2:-1]:
        import_module(name)
    gc.freeze()
    asked = _Forks(socket.socket(fileno=int(sys.argv[1]))).serve()
    if asked is not None:
        try:
            runpy.run_module(_become(*asked), run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if isinstance(end.code, int):
                _end(end.code)
            raise


def _end(status: int) -> None:
    """End as Python ends, but for its modules: to take them apart copies their memory, in a tenth of a second.

    Returns when what was written cannot be told: Python is to say so.
    """
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    gc.collect()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _main()
