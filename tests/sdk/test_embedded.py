"""An embedded service is private, is there when a client asks, and ends with its process, which its module watches."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from service.sandbox.spawn import COMPILING
from tensorkiln import Client
from tensorkiln.embedded import EmbeddedService, embedded_service
from tensorkiln.errors import UnavailableError
from tests.sandbox.processes import alive
from tests.service.bodies import compile_body, encoded, graph
from tests.service.forked import forked_embedding
from tests.service.server import JSON, await_end, children
from tests.service.test_start import environment_in


def pid_of(home: Path) -> int:
    pid = embedded_service(home, 60.0).pid
    assert pid is not None
    return pid


def script(text: str, home: Path) -> subprocess.Popen[str]:
    preamble = f"""
    import os, sys, time
    from pathlib import Path
    from tensorkiln import Client
    from tensorkiln.embedded import embedded_service
    home = Path({str(home)!r})
    client = Client(cache_dir=home)
    def pid():
        return embedded_service(home, 60.0).pid
    """
    program = textwrap.dedent(preamble) + textwrap.dedent(text)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_clients_share_one_service_which_is_private_to_its_user(home: Path) -> None:
    with Client(cache_dir=home) as first, Client(cache_dir=home) as second:
        first.capabilities()
        started = pid_of(home)
        second.capabilities()
        assert pid_of(home) == started
    socket = embedded_service(home, 60.0).address().socket
    assert socket is not None
    assert Path(socket).parent.stat().st_mode & 0o077 == 0


def test_a_service_that_died_is_started_again(tmp_path: Path) -> None:
    with forked_embedding(), Client(cache_dir=tmp_path) as client:
        before = client.capabilities()["targets"]
        first = pid_of(tmp_path)
        os.kill(first, signal.SIGKILL)
        await_end(first)
        while embedded_service(tmp_path, 60.0).pid is not None:
            time.sleep(0.02)
        assert client.capabilities()["targets"] == before
        assert pid_of(tmp_path) != first
    embedded_service(tmp_path, 60.0).stop()
    assert embedded_service(tmp_path, 60.0).pid is None


def test_the_service_ends_when_its_process_is_killed(tmp_path: Path) -> None:
    text = """
    client.capabilities()
    print(pid(), embedded_service(home, 60.0).address().socket, flush=True)
    time.sleep(120)
    """
    with script(text, tmp_path) as process:
        assert process.stdout is not None
        service, socket = process.stdout.readline().split()
        process.kill()
    await_end(int(service))
    assert not Path(socket).parent.exists()


def test_a_forked_child_has_a_service_of_its_own_which_ends_with_it(tmp_path: Path) -> None:
    text = """
    client.capabilities()
    parents = pid()
    print(parents, flush=True)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the parent is the one that is to say nothing
        client.capabilities()
        print(pid(), flush=True)
        sys.exit(0 if pid() not in (None, parents) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    client.capabilities()
    assert pid() == parents
    """
    with script(text, tmp_path) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    for service in out.split():
        await_end(int(service))


def test_without_a_server_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorkiln_server", None)
    with (
        Client(cache_dir=tmp_path) as client,
        pytest.raises(UnavailableError, match="No compile service is installed") as refused,
    ):
        client.capabilities()
    assert "pip install tensorkiln-server" in refused.value.message
    assert "KILN_URL" in refused.value.message


@pytest.mark.parametrize(
    ("place", "time_s", "said"),
    [
        (".", 0.01, r"not ready within 0\.01 s .*KILN_STARTUP_TIMEOUT_S"),
        ("file/home", 60.0, r"cannot be started: .*file"),
    ],
)
def test_a_service_that_cannot_start_is_ended_and_reported(
    tmp_path: Path, place: str, time_s: float, said: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    service = EmbeddedService(tmp_path / place, time_s)
    with pytest.raises(UnavailableError, match=said):
        service.address()
    assert service.pid is None
    service.stop()


def test_a_local_folder_is_not_taken_for_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("service", "tensorkiln_server"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not yours')")
    monkeypatch.chdir(tmp_path)
    with Client(cache_dir=tmp_path / "home") as client:
        assert client.capabilities()
    embedded_service(tmp_path / "home", 60.0).stop()


WATCHED = [sys.executable, "-m", "tensorkiln.parent_watchdog"]

# Starts a watched server from a thread that ends at once, says its process id, and waits to be killed.
PARENT = textwrap.dedent(
    f"""
    import subprocess, sys, threading, time
    started = []
    def start():
        command = {WATCHED!r} + [sys.argv[1], "http.server", "0", "--bind", "127.0.0.1"]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True))
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    print(started[0].pid, flush=True)
    time.sleep(60)
    """
)


def test_a_watched_module_outlives_threads_but_not_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            time.sleep(0.5)
            assert alive(child)
        finally:
            parent.send_signal(signal.SIGKILL)
    await_end(child)
    assert not folder.exists()


def test_a_watched_module_gets_its_arguments_and_gives_its_status(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*WATCHED, str(tmp_path), "json.tool", "--no-such-option"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watched:
        assert watched.stderr is not None
        assert "--no-such-option" in watched.stderr.read()
        assert watched.wait(30) == 2
    assert tmp_path.exists()


READY = "tensorkiln is ready"


@contextmanager
def private(home: Path, **settings: str) -> Generator[tuple[subprocess.Popen[str], httpx2.Client]]:
    socket = home / "s"
    command = [sys.executable, "-W", "error", "-m", "service", "--private", "--uds", str(socket)]
    pipe, environment = subprocess.PIPE, environment_in(home, KILN_AUTH="off", **settings)
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as service:
        try:
            assert service.stdout is not None
            assert service.stdout.readline().startswith(READY)
            transport = httpx2.HTTPTransport(uds=str(socket))
            with httpx2.Client(transport=transport, base_url="http://private", timeout=60, verify=False) as http:
                yield service, http
        finally:
            service.kill()


def test_it_has_one_fork_server_and_its_first_compile_comes_in_the_place_of_a_small_graph(tmp_path: Path) -> None:
    with private(tmp_path, KILN_COMPILE_MEMORY_MIB="777") as (service, http):
        (fork_server,) = children(service.pid)
        # It was begun before the settings were known.
        command = Path(f"/proc/{fork_server}/cmdline").read_bytes().split(b"\0")
        assert command[-2:] == [COMPILING.encode(), b""]
        assert http.get("/capabilities").json()["limits"]["compile_memory_mib"] == 777
        answer = http.post("/compile", content=encoded(compile_body(graph("sin"))), headers=JSON)
        assert answer.status_code == 200
        assert 'kind="trial"' not in http.get("/metrics").text
        assert http.get("/readyz").status_code == 200


def test_it_does_not_start_without_a_store_that_takes_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "readiness").write_text("a file in the place of a folder")
    service = EmbeddedService(tmp_path, 60.0)
    with forked_embedding():
        for _ in range(2):
            with pytest.raises(
                UnavailableError, match=r"ended with status 1\. It printed: The service cannot start, .*store"
            ):
                service.address()
    service.stop()


def test_one_that_is_only_begun_ends_with_the_others(tmp_path: Path) -> None:
    service = EmbeddedService(tmp_path, 60.0)
    service.begin()
    pid = service.pid
    assert pid is not None
    service.stop()
    assert service.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
