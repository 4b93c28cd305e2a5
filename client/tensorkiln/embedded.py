"""A private compile service in a child process, for clients that name no URL.

There is one per process and home directory, started by the first request, shared by all clients, and listening on a
Unix socket that only this user can open. It ends with this process, and is restarted after it has died.
"""

from __future__ import annotations

import atexit
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .compiler_build import SERVER
from .errors import UnavailableError

URL = "http://embedded.invalid"
STOP_GRACE_S = 10.0

# -P: do not import from the working directory, which may have a folder called `tensorkiln_server`.
_WATCHED = (sys.executable, "-P", "-m", "tensorkiln.parent_watchdog")
_READY = b"tensorkiln is ready on "
# The kernel's limit on a Unix socket's path, with the terminating zero: 108 bytes on Linux, 104 on macOS.
_MAX_SOCKET_PATH = 103
_KEPT_LINES = 40


@dataclass(frozen=True, slots=True)
class Address:
    """The base URL of a service, and the path of its Unix socket if it has one."""

    url: str
    socket: str | None = None


class EmbeddedService:
    """A service with its store under `home`; it may take `startup_timeout_s` seconds to become ready."""

    def __init__(self, home: Path, startup_timeout_s: float) -> None:
        self._home = home
        self._startup_timeout_s = startup_timeout_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._directory: Path | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the running service, None before the first request and after the end."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def address(self) -> Address:
        """The address of the service, which is started if it is not running. UnavailableError when that fails."""
        with self._lock:
            directory = self._begun()
            if not self._is_ready:
                self._await_ready(directory / "log")
            return Address(URL, str(directory / "s"))

    def begin(self) -> None:
        """Start the service if it is not running, without waiting until it is ready; errors as for `address`."""
        with self._lock:
            self._begun()

    def stop(self) -> None:
        """End the service and remove its files; the next request starts another."""
        with self._lock:
            if self._process is not None:
                _end(self._process)
            if self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
            self._process = self._directory = None
            self._is_ready = False

    def forget(self) -> None:
        """Close this process's end of the pipe. The service ends once nobody holds one: a parent keeps its own."""
        if self._process is not None:
            _close_pipes(self._process)
            self._process.returncode = 0

    def _begun(self) -> Path:
        """Start the process unless it runs or is starting; return its directory."""
        if self._directory is None:
            self._directory = _private_directory()
        if self._process is None or (self._is_ready and self.pid is None):
            self._start(self._directory / "s", self._directory / "log")
        return self._directory

    def _start(self, path: Path, log: Path) -> None:
        if self._process is not None:
            _end(self._process)
        _require_server()
        path.unlink(missing_ok=True)
        self._is_ready = False
        self._process = _spawn(path, log, self._home)

    def _await_ready(self, log: Path) -> None:
        assert self._process is not None
        try:
            _await_ready(self._process, log, self._startup_timeout_s)
        except BaseException:
            process, self._process = self._process, None
            _end(process)
            raise
        self._is_ready = True


def _require_server() -> None:
    if sys.platform != "linux":
        raise UnavailableError(
            f"The compile service runs on Linux, and this system is {sys.platform}: "
            "name a running service by Client('http://host:8080') or KILN_URL."
        )
    if find_spec(SERVER) is None:
        raise UnavailableError(
            "No compile service is installed beside this SDK. "
            "Run `pip install tensorkiln-server`, or name a running service: Client('http://host:8080') or KILN_URL.",
            details={"missing": [SERVER]},
        )


def _private_directory() -> Path:
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if parent and os.access(parent, os.W_OK | os.X_OK) and len(os.fsencode(parent)) + 16 <= _MAX_SOCKET_PATH:
            return Path(tempfile.mkdtemp(prefix="kiln-", dir=parent))
    raise UnavailableError(
        f"No writable directory has a path short enough for a Unix socket ({_MAX_SOCKET_PATH} bytes); "
        "set TMPDIR to one."
    )


def _spawn(path: Path, log: Path, home: Path) -> subprocess.Popen[bytes]:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with log.open("wb") as output:
            return subprocess.Popen(
                [*_WATCHED, str(path.parent), SERVER, "--private", "--uds", str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=_environment(home),
                # Ctrl-C at the terminal must not reach the service; it ends with this process.
                start_new_session=True,
            )
    except OSError as error:
        raise UnavailableError(f"The embedded service cannot be started: {error}.") from error


def _environment(home: Path, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    # No authentication: only this user can open the socket. Only warnings are logged, because the log is read only
    # after a failure. A small disk floor, because the user's disk may be full. The search for pydantic plugins is slow.
    quiet = {"KILN_LOG": "warning", "KILN_DISK_FLOOR_MIB": "64", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
    return {**quiet, **inherited, "KILN_HOME": str(home), "KILN_AUTH": "off"}


def _await_ready(process: subprocess.Popen[bytes], log: Path, timeout_s: float) -> None:
    """Wait for the service's ready line, its only output to standard output. UnavailableError when it does not come."""
    assert process.stdout is not None
    with process.stdout as output, selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        if not selector.select(timeout_s):
            raise _failure(f"was not ready within {timeout_s:g} s (KILN_STARTUP_TIMEOUT_S gives it longer)", log)
        if output.readline().startswith(_READY):
            return
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_GRACE_S)
    raise _failure(f"ended with status {process.returncode}", log)


def _failure(what: str, log: Path) -> UnavailableError:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    last = lines[-1] if lines else "nothing"
    return UnavailableError(f"The embedded service {what}. It printed: {last}", details={"log": lines[-_KEPT_LINES:]})


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    _close_pipes(process)
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        # The service leads its own process group: this also kills its fork server.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


_services: dict[Path, EmbeddedService] = {}
_services_lock = threading.Lock()


def embedded_service(home: Path, startup_timeout_s: float) -> EmbeddedService:
    """The service of this process for `home`; `address` or `begin` starts it."""
    with _services_lock:
        return _services.setdefault(home, EmbeddedService(home, startup_timeout_s))


def _forget_all() -> None:
    global _services_lock
    _services_lock = threading.Lock()
    for service in _services.values():
        service.forget()
    _services.clear()


# The services end by themselves when their pipes are closed: this process need not wait for them.
atexit.register(_forget_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
