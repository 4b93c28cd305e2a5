"""`python -m tensorkiln_server scrub`: verify everything in a store, remove faulty entries, and report in JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import structlog

from service.identity.keyring import Keyring as Tenants
from service.process.interpreter import end_process
from service.settings import Hours, Mib, Settings, argument, read_settings
from service.store.disk import Item
from service.store.evict import Bounds, evict, remove, remove_unfinished, unfinished
from service.store.inventory import (
    BLOBS,
    HISTORY,
    PROGRAMS,
    QUARANTINE,
    RECORDS,
    REQUESTS,
    RIGHTS,
    contents,
    needed_blobs,
    read,
    signed_record,
)
from service.store.job_records import OPEN_FOLDER, OWNERS_FOLDER, PROGRESS_FOLDER
from service.store.location import ObjectStore, explained, open_store
from service.store.records import unsealed
from service.store.repeats import stated
from service.trust.keyring import Keyring
from service.trust.notary import SEAL, Notary
from tensorkiln.errors import RequestError, UnavailableError
from tensorkiln.trust import LEVELS
from tensorkiln.trust.keys import KeySet
from tensorkiln.trust.record import Sha256

from .purge import Mark, build_data, purge, tenant_data

JUDGED: Final = (*RECORDS, *HISTORY, OPEN_FOLDER, PROGRESS_FOLDER, OWNERS_FOLDER, RIGHTS)
"""Folders of the records that can be judged."""

Fault: TypeAlias = Literal["corrupt", "untrusted", "incomplete"]


async def fault_of(
    store: ObjectStore, path: str, content: bytes, notary: Notary, present: Collection[str]
) -> Fault | None:
    """The fault of the record at `path`; None when it has none. `present` are digests of blobs known to be whole."""
    record = unsealed(content)
    if record is None:
        return "corrupt"
    if not path.startswith(RECORDS):
        return None  # its readers check whether it is trusted, and whether the blobs that it names exist
    if not _is_trusted(path, record, notary):
        return "untrusted"
    needed = needed_blobs(path, content, record)
    if needed is None:
        return "corrupt"
    for digest in needed:
        # The blob may have been written after the blobs were listed.
        blob = None if digest in present else await read(store, f"{BLOBS}{digest[:2]}/{digest}")
        if digest not in present and (blob is None or sha256(blob).hexdigest() != digest):
            return "incomplete"
    return None


def _is_trusted(path: str, record: Mapping[str, Any], notary: Notary) -> bool:
    if path.startswith(PROGRAMS):
        return notary.believes(record.get("signed", ""), path.rpartition("/")[2]) is not None
    if not path.startswith(REQUESTS):
        return True
    said = stated(record)
    is_sealed = notary.opened("answer", path.rpartition("/")[2], record) is not None
    return is_sealed and (said is None or all(map(notary.is_valid, said.keys)))


async def require_signer(store: ObjectStore, keys: KeySet, directory: Path) -> None:
    """Raise RequestError when there are signed records, and none names one of `keys` in `directory`."""
    kids = {key.kid for key in keys.keys}
    strangers: set[str] = set()
    for prefix in (PROGRAMS, REQUESTS):
        async for item, content in contents(store, prefix):
            kid = _signer(item.path, unsealed(content) or {})
            if kid in kids:
                return
            if kid is not None:
                strangers.add(kid)
    if strangers:
        raise RequestError(
            f"The store is signed with {len(strangers)} other keys than the {len(kids)} in {directory} (KILN_KEYS, or "
            "KILN_HOME), so every entry would be deleted. Name the directory of the services that use the store; if "
            "their keys are lost, --lost-keys deletes the entries that they signed."
        )


def _signer(path: str, record: Mapping[str, Any]) -> str | None:
    """The key id that an untrusted record names; None when it names none."""
    said: Any = signed_record(record) if path.startswith(PROGRAMS) else record.get(SEAL)
    kid: Any = said.get("key") if isinstance(said, Mapping) else None
    return kid if isinstance(kid, str) else None


@dataclass(slots=True)
class Report:
    """Numbers of blobs, records, rights to read and bytes that were checked; paths of faulty entries, by the fault."""

    blobs: int = 0
    records: int = 0
    rights: int = 0
    bytes: int = 0
    corrupt: list[str] = field(default_factory=list[str])
    untrusted: list[str] = field(default_factory=list[str])
    incomplete: list[str] = field(default_factory=list[str])
    unfinished: list[str] = field(default_factory=list[str])

    @property
    def is_clean(self) -> bool:
        """Whether there is no fault; unfinished files of killed writers do no harm."""
        return not (self.corrupt or self.untrusted or self.incomplete)


async def scrub(store: ObjectStore, notary: Notary, *, dry_run: bool = False, quarantine: bool = False) -> Report:
    """Read and verify all blobs and records, and remove what is corrupt, untrusted or lacks a blob.

    Entries that are rewritten meanwhile stay, and so do open jobs, which a service ends when it cannot read them.
    """
    report = Report()
    present: set[str] = set()
    faulty: list[Item] = []
    async for item, content in contents(store, BLOBS):
        report.blobs += 1
        report.bytes += len(content)
        digest = item.path.rpartition("/")[2]
        if (await asyncio.to_thread(sha256, content)).hexdigest() == digest:
            present.add(digest)
        else:
            report.corrupt.append(item.path)
            faulty.append(item)
    for prefix in JUDGED:
        async for item, content in contents(store, prefix):
            report.bytes += len(content)
            report.rights += prefix == RIGHTS
            report.records += prefix != RIGHTS
            fault = await fault_of(store, item.path, content, notary, present)
            if fault is not None:
                getattr(report, fault).append(item.path)
                faulty.append(item)
    report.unfinished = unfinished(store)
    if not dry_run:
        for item in faulty:
            if item.path.startswith(OPEN_FOLDER):
                continue
            if quarantine:
                with explained("The store does not move damaged entries"), suppress(FileNotFoundError):
                    await store.write(QUARANTINE + item.path, await store.read(item.path), durable=False)
            await remove(store, item)
        remove_unfinished(report.unfinished)
    return report


def main() -> int:
    """The exit status: 0 without faults, 1 with faults, 2 when the store cannot be checked."""
    parser = argparse.ArgumentParser(prog="python -m tensorkiln_server scrub", description="Verify a tensorkiln store.")
    parser.add_argument("--store", help="path or URL (default: KILN_STORE, or store in KILN_HOME)")
    parser.add_argument("--dry-run", action="store_true", help="report, and delete nothing")
    parser.add_argument("--quarantine", action="store_true", help="move damaged entries to quarantine/ in the store")
    parser.add_argument(
        "--lost-keys", action="store_true", help="run even if KILN_KEYS has none of the keys that signed the store"
    )
    parser.add_argument("--max-mib", type=argument(Mib), help="then evict down to this (default: KILN_STORE_MAX_MIB)")
    parser.add_argument("--max-age-h", type=argument(Hours), help="and what is older (default: KILN_STORE_MAX_AGE_H)")
    purged = parser.add_mutually_exclusive_group()
    purged.add_argument(
        "--purge-build",
        metavar="BUILD_ID",
        type=argument(Sha256),
        help="then delete all entries of this build of the compiler",
    )
    purged.add_argument("--purge-tenant", metavar="NAME", help="then delete all entries of this tenant")
    arguments = parser.parse_args()
    settings = read_settings()
    if settings is None:
        return 2
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    bounds = Bounds.of(
        settings.store_max_mib if arguments.max_mib is None else arguments.max_mib,
        settings.store_max_age_h if arguments.max_age_h is None else arguments.max_age_h,
    )
    try:
        report = asyncio.run(_run(arguments, settings, bounds))
    except (UnavailableError, RequestError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(report, indent=2))
    return 0 if report["clean"] else 1


async def _run(arguments: argparse.Namespace, settings: Settings, bounds: Bounds) -> dict[str, object]:
    mark: Mark | None = None
    if arguments.purge_tenant is not None:
        mark = tenant_data(Tenants(settings.identity), arguments.purge_tenant, settings.salt)
    elif arguments.purge_build is not None:
        mark = build_data(arguments.purge_build)
    store = open_store(arguments.store or settings.store, make=False)
    keyring = Keyring(settings.keys)
    if not arguments.lost_keys:
        await require_signer(store, keyring.published(), settings.keys)
    # The lowest level: each service requires its own, and compiles again what has less.
    notary = Notary(keyring, settings.worker, LEVELS[0])
    report = await scrub(store, notary, dry_run=arguments.dry_run, quarantine=arguments.quarantine)
    answer: dict[str, object] = {"clean": report.is_clean, **asdict(report), "purged": None, "evicted": None}
    if mark is not None:
        answer["purged"] = asdict(await purge(store, mark, dry_run=arguments.dry_run))
    if (mark is not None or bounds != Bounds()) and not arguments.dry_run:
        answer["evicted"] = asdict(await evict(store, bounds))
    return answer


if __name__ == "__main__":
    end_process(main())
