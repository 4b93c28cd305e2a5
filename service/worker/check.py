"""Whether a worker could work with these settings, found out before it takes orders.

A fork of the worker does, and has all that it needs imported; nothing of the store or of an event loop survives a fork.
"""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from secrets import token_hex

from service.process.exit import end_process
from service.sandbox.confine import give_way
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from service.store.location import open_store
from service.store.records import Records
from service.trust.keyring import Keyring
from tensorkiln.errors import UnavailableError


def require_start(settings: Settings) -> None:
    """UnavailableError with the reason when the isolation, the key or the store is not what a worker needs."""
    reading, writing = os.pipe()
    if (trying := os.fork()) == 0:
        status = 1
        try:
            status = _try(settings, writing)
        finally:
            end_process(status)  # before anything of the worker's own is ended that it has begun
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as told:
            reason = told.read()
    except BaseException:
        os.kill(trying, signal.SIGKILL)
        raise
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(trying, 0)[1])
    if status != 0:
        raise UnavailableError(f"The worker cannot start: {reason or f'what tries it ended with {status}'}")


async def check(settings: Settings) -> None:
    """Try a process like those of compiles, without the compiler; the key; and a write to the store."""
    sandbox = Sandbox(wall=settings.isolation, required=settings.require_isolation)
    try:
        await sandbox.start()
    finally:
        await sandbox.close()
    keyring = Keyring(settings.keys_directory, public_directory=settings.public_keys)
    keyring.publish()
    keyring.signer()
    records = Records(open_store(settings.store_location))
    path, written = f"canary/{token_hex(8)}", {"value": token_hex(16)}
    await records.put(path, written)
    kept = await records.get(path) == written
    await records.delete(path)
    if not kept:
        raise UnavailableError("The store does not keep what is written to it.")


def _try(settings: Settings, telling: int) -> int:
    """The exit status of a process that tries; the reason against a start goes to the descriptor `telling`."""
    try:
        # What begins on this machine gives way to what compiles on it.
        give_way(os.getpid())
        asyncio.run(check(settings))
    except UnavailableError as error:
        os.write(telling, str(error).encode(errors="replace"))
        return 1
    except BaseException:  # it is the end of this process, whatever it is
        traceback.print_exc()
        return 1
    return 0
