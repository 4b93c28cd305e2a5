"""Remove everything that one build made, or that one tenant has, when it is no longer to be trusted."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from service import clock
from service.action import Action
from service.engine.reproducer import reproduced_action
from service.identity.keyring import Keyring
from service.identity.register import TENANT_PATTERN
from service.identity.tenancy import folders_of, salt_of
from service.store.attempts import FOLDER as CRASHES
from service.store.evict import GRACE_S, remove
from service.store.inventory import BLOBS, PROGRAMS, REQUESTS, RIGHTS, contents, items, read, signed_record
from service.store.job_records import ENDED_FOLDER
from service.store.location import ObjectStore
from service.store.nearest import FOLDER as NEAREST
from service.store.nearest import entries_of, forget, shown_salt
from service.store.records import Records, unsealed
from tensorkiln.compiler_build import build
from tensorkiln.errors import RequestError
from tensorkiln.limits import SHA256_PATTERN

# Records that refer to a program are removed before it.
_ORDER: Final = (REQUESTS, ENDED_FOLDER, CRASHES, PROGRAMS)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Which records to remove.

    A program is judged by its action digest and signed record, trusted or not; a neighbour, an entry of the index of
    programs, by its components; a job, which has ended, by its caller; a crash by its name and reproducer. `owners` are
    the folders whose rights to read are removed too.
    """

    has_program: Callable[[str, Mapping[str, Any]], bool]
    has_answer: Callable[[bytes], bool]
    has_neighbour: Callable[[Mapping[str, Any]], bool]
    has_job: Callable[[Any], bool] = lambda _: False
    has_crash: Callable[[str, bytes], bool] = lambda _name, _reproducer: False
    owners: Collection[str] = ()


def build_data(build_id: str) -> Mark:
    """Select what a build of the compiler made. It has no rights, and its crashes expire in minutes."""
    return Mark(
        has_program=lambda _, record: record.get("build_id") == build_id,
        has_answer=lambda answer: build_id.encode() in answer,  # every program of an answer states its build
        has_neighbour=lambda components: components.get("build_id") == build_id,
    )


@dataclass(frozen=True, slots=True)
class Purged:
    """Numbers of programs, of answers, ended jobs and crashes that come from them, and of rights."""

    programs: int = 0
    answers: int = 0
    jobs: int = 0
    crashes: int = 0
    rights: int = 0


async def purge(store: ObjectStore, mark: Mark, *, dry_run: bool = False) -> Purged:
    """Remove all records that `mark` selects, and count them; a `dry_run` only counts. Then evict their blobs.

    Work in progress stays: open jobs, running attempts, and rights younger than GRACE_S.
    """
    found = {folder: [path async for path in _found(store, folder, mark)] for folder in _ORDER}
    before = clock.time() - GRACE_S
    listed = [right for owner in mark.owners async for right in items(store, f"{RIGHTS}{owner}/")]
    rights = [right for right in listed if right.used < before]
    if not dry_run:
        records = Records(store)
        async for path, record in _records(store, NEAREST):
            gone = [each.digest for each in entries_of(record) if mark.has_neighbour(each.components)]
            if gone:
                await forget(records, path, gone)
        for folder in _ORDER:
            for path in found[folder]:
                await records.delete(path)
        for right in rights:
            await remove(store, right)
    programs, answers, jobs, crashes = (len(found[each]) for each in (PROGRAMS, REQUESTS, ENDED_FOLDER, CRASHES))
    return Purged(programs, answers, jobs, crashes, len(rights))


async def _found(store: ObjectStore, folder: str, mark: Mark) -> AsyncGenerator[str]:
    """The paths of the records to remove in a folder."""
    async for path, record in _records(store, folder):
        name = path.rpartition("/")[2]
        if folder == PROGRAMS:
            is_to_go = mark.has_program(name, signed_record(record))
        elif folder == CRASHES:
            reproducer = await _blob(store, _reproducer(record))
            is_to_go = reproducer is not None and mark.has_crash(name, reproducer)
        else:
            answer = await _blob(store, record.get("answer"))
            is_to_go = mark.has_job(record.get("caller")) or (answer is not None and mark.has_answer(answer))
        if is_to_go:
            yield path


async def _records(store: ObjectStore, folder: str) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """The records in a folder with their paths, except damaged ones."""
    async for item, content in contents(store, folder):
        if (record := unsealed(content)) is not None:
            yield item.path, record


def _reproducer(record: Mapping[str, Any]) -> Any:
    """The digest of the reproducer of a crash; a running attempt has none."""
    with suppress(KeyError, TypeError):
        return record["problem"]["details"]["reproducer"]
    return None


async def _blob(store: ObjectStore, digest: Any) -> bytes | None:
    """The bytes of the blob that an untrusted record names; None when there are none."""
    if not isinstance(digest, str) or re.fullmatch(SHA256_PATTERN, digest) is None:
        return None
    return await read(store, f"{BLOBS}{digest[:2]}/{digest}")


def tenant_data(keyring: Keyring, tenant: str, operator_salt: str) -> Mark:
    """Select the data of `tenant` with this operator's salt. RequestError when its part of the store is shared."""
    if re.fullmatch(TENANT_PATTERN, tenant) is None:
        raise RequestError(f"No tenant is called {tenant!r}.")
    if keyring.tenant(tenant).shared:
        raise RequestError(
            f"The tenant {tenant} shares its store with others, whose entries cannot be told from its own. What it "
            f"stored while it had its own can be purged after "
            f"`python -m tensorkiln_server identity tenant {tenant} --no-shared`."
        )
    if not keyring.has_secret:
        raise RequestError("There are no tenants: KILN_IDENTITY, or KILN_HOME, has no secret to tell them apart by.")
    names = (key.holder for key in keyring.register.keys if key.tenant == tenant)
    salt = salt_of(tenant, operator_salt, keyring.secret)

    def has_program(action: str, record: Mapping[str, Any]) -> bool:
        # No record has the salt: an action is the tenant's when its components and the salt give its digest.
        try:
            return Action(**record["request"], build_id=record["build_id"], salt=salt).digest == action
        except (KeyError, TypeError):
            return False

    def has_answer(answer: bytes) -> bool:
        try:
            records = [signed["record"] for signed in json.loads(answer)["signatures"] if signed is not None]
            return any(has_program(record["action"], record) for record in records)
        except (ValueError, KeyError, TypeError, RecursionError):
            return False

    def has_crash(name: str, reproducer: bytes) -> bool:
        # Of this build only: crashes of other builds have expired.
        action = reproduced_action(reproducer, build().build_id, salt)
        return action is not None and sha256(action.digest.encode()).hexdigest() == name.partition(".")[0]

    return Mark(
        has_program=has_program,
        has_answer=has_answer,
        has_neighbour=lambda components: components.get("salt") == shown_salt(salt),
        has_job=lambda caller: isinstance(caller, Mapping) and caller.get("namespace") == tenant,
        has_crash=has_crash,
        owners=folders_of(tenant, names),
    )
