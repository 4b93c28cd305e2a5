"""A real broker on private ports, with its data in a directory of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from .ports import await_answer, await_silence, free_port

RABBIT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's, without the wrapper that changes to the user rabbitmq: it runs as whoever starts it."""
_START_S = 60.0


def missing() -> str:
    """What has to be installed for a broker; empty when it is there."""
    return "" if RABBIT.exists() and shutil.which("epmd") else "install rabbitmq-server (apt-get install)"


class Rabbit:
    """One node of RabbitMQ with its own port mapper, so that nothing of it outlives it."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._home = home
        self._port, distribution, mapper = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}//"
        (home / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self._port}\n"
            "loopback_users.guest = true\n"
            "log.console = false\nlog.file.level = warning\n"
            # A machine for tests may have little of either: what counts is that the broker does not stop for it.
            "disk_free_limit.absolute = 50MB\nvm_memory_high_watermark.relative = 0.6\n"
        )
        (home / "plugins").write_text("[].\n")
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"kiln{self._port}@localhost",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_PID_FILE": str(home / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1",
        }
        self._mapper = self._spawn(["epmd", "-port", str(mapper)])
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the node, and wait until it speaks AMQP."""
        self._server = self._spawn([str(RABBIT)])
        await_answer(self._port, _START_S, b"AMQP\x00\x00\x09\x01")

    def kill(self) -> None:
        """SIGKILL to all that it is made of."""
        _end(self._server, signal.SIGKILL)
        await_silence(self._port, _START_S)

    def told(self, *question: str) -> Any:
        """What `rabbitmqctl` answers in JSON."""
        done = subprocess.run(
            [str(RABBIT.with_name("rabbitmqctl")), "--quiet", "--formatter", "json", *question],
            env=self._environment,
            stdout=subprocess.PIPE,
            check=True,
            timeout=60,
        )
        return json.loads(done.stdout)

    def close(self) -> None:
        """End node and port mapper."""
        _end(self._server, signal.SIGKILL)
        _end(self._mapper, signal.SIGKILL)

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._home / "output").open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                cwd=self._home,
                start_new_session=True,
            )


def _end(process: subprocess.Popen[bytes] | None, number: signal.Signals) -> None:
    """A signal to a process and its group, which is its own."""
    if process is not None and process.poll() is None:
        os.killpg(process.pid, number)
        process.wait()
