"""Whether a worker could work with these settings, found out before it takes orders.

`python -m service.worker.check`, which the worker runs: nothing of the store or of an event loop survives its forks.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from secrets import token_hex

from service.leave import leave
from service.observe.log import configure_log
from service.sandbox.confine import give_way
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.location import open_store
from service.store.records import Records
from service.trust.keyring import Keyring
from tensorkiln.errors import UnavailableError

from .probe import DIRECTORY


def require_start() -> None:
    """UnavailableError with the reason when the isolation, the key or the store is not what a worker needs."""
    # The figures are those of the worker's own processes.
    variables = {name: value for name, value in os.environ.items() if name != DIRECTORY}
    command = [sys.executable, "-P", "-m", "service.worker.check"]
    checked = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=variables, text=True)
    if checked.returncode != 0:
        reason = checked.stdout.strip() or f"what tries it ended with {checked.returncode}"
        raise UnavailableError(f"The worker cannot start: {reason}")


async def check(settings: Settings) -> None:
    """Try a process like those of compiles, without the compiler; the key; and a write to the store."""
    sandbox = Sandbox(wall=settings.isolation, required=settings.require_isolation)
    try:
        await sandbox.start()
    finally:
        await sandbox.close()
    keyring = Keyring(settings.keys_directory, public_directory=settings.public_keys_directory)
    keyring.publish()
    keyring.signer()
    records = Records(open_store(settings.store_location))
    path, written = f"canary/{token_hex(8)}", {"value": token_hex(16)}
    await records.put(path, written)
    kept = await records.get(path) == written
    await records.delete(path)
    if not kept:
        raise UnavailableError("The store does not keep what is written to it.")


def main() -> int:
    """The exit status."""
    settings = Settings()
    configure_log(settings.log)
    # What begins on this machine gives way to what compiles on it.
    give_way(os.getpid())
    try:
        asyncio.run(check(settings))
    except UnavailableError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    leave(main())
