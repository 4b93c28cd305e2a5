"""Commands of Python's that need not load what they run: each is forked from a process that has loaded it.

To load the SDK takes a second of a processor, and what most commands do a tenth of that. A forked one is a process like
any other, with arguments, an environment, a directory and streams of its own, and ends as Python ends.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Final, Self

ROOT: Final = Path(__file__).parents[1]
_MAX_REQUEST: Final = 1 << 17


class Forked:
    """Runs `python -W error -m MODULE` one at a time, in copies of a process that has loaded the modules `loaded`."""

    def __init__(self, *loaded: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.forked", str(number), *loaded],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[number],
            )
        self._socket, self._answers = ours, ours.makefile("r")

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
        if _of_python(env) != _of_python(os.environ):
            command = [sys.executable, "-W", "error", "-m", module, *arguments]
            assert file_bytes == resource.RLIM_INFINITY
            return subprocess.run(
                command, cwd=cwd, env=env, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False
            )
        out, printed = os.pipe()
        err, complained = os.pipe()
        with open(out) as output, open(err) as error, ThreadPoolExecutor(1) as reader:
            request = json.dumps([module, arguments, str(cwd), dict(env), file_bytes]).encode()
            streams = [printed if stdout == subprocess.PIPE else stdout, complained]
            socket.send_fds(self._socket, [request], streams)
            os.close(printed)
            os.close(complained)
            pid = int(self._answers.readline())
            try:
                said = reader.submit(error.read)
                texts = output.read(), said.result()
            except BaseException:
                os.kill(pid, signal.SIGKILL)
                raise
            finally:
                status = int(self._answers.readline())
        return subprocess.CompletedProcess([module, *arguments], status, *texts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()
        self._socket.close()
        self._process.wait(60)


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("PYTHON") and value}


def _forked(requests: socket.socket) -> str | None:
    """In each copy the module that it is to run; None in the process that makes them, when no more are asked for."""
    while True:
        request, streams, *_ = socket.recv_fds(requests, _MAX_REQUEST, 2)
        if not request:
            return None
        pid = os.fork()
        if pid == 0:
            break
        for stream in streams:
            os.close(stream)
        requests.send(b"%d\n" % pid)
        requests.send(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    module, arguments, directory, environment, file_bytes = json.loads(request)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0], sys.argv[1:] = directory, arguments
    # Python warns of a module that it is to run and that somebody has loaded.
    is_package = hasattr(sys.modules.get(module), "__path__")
    sys.modules.pop(f"{module}.__main__" if is_package else module, None)
    return module


def _main() -> None:
    for name in sys.argv[2:]:
        import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        module = _forked(requests)
    if module is not None:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
