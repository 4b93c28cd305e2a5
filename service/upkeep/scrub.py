"""`python -m tensorkiln_server scrub`: verify everything in a store, and remove faulty entries.

It prints JSON.

Removed programs are compiled again when they are requested. It may run beside services that use the store.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256

import structlog

from service.identity.keyring import Keyring as Tenants
from service.process.exit import end_process
from service.settings import Settings
from service.startup_errors import read_settings
from service.store.evict import Bounds, evict, remove
from service.store.inventory import BLOBS, QUARANTINE, RIGHTS, Item, items, read
from service.store.job_records import OPEN_FOLDER as OPEN_JOBS
from service.store.leftovers import remove_unfinished, unfinished
from service.store.location import ObjectStore, explained, open_store
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from tensorkiln.errors import RequestError, UnavailableError
from tensorkiln.limits import SHA256_PATTERN
from tensorkiln.trust import LEVELS

from .judge import JUDGED, fault_of, require_signer
from .purge import Mark, OfBuild, purge, tenant_data
from .upkeep import bounds


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

    `notary` verifies signatures. `quarantine` keeps a copy below that name; `dry_run` only reports. Entries that are
    rewritten meanwhile stay, and so do open jobs, which a service ends when it cannot read them.
    """
    report = Report()
    present: set[str] = set()
    faulty: list[Item] = []
    async for item, content in _contents(store, BLOBS, report):
        report.blobs += 1
        digest = item.path.rpartition("/")[2]
        if (await asyncio.to_thread(sha256, content)).hexdigest() == digest:
            present.add(digest)
        else:
            report.corrupt.append(item.path)
            faulty.append(item)
    for prefix in JUDGED:
        async for item, content in _contents(store, prefix, report):
            report.rights += prefix == RIGHTS
            report.records += prefix != RIGHTS
            fault = await fault_of(store, item.path, content, notary, present)
            if fault is not None:
                getattr(report, fault).append(item.path)
                faulty.append(item)
    report.unfinished = unfinished(store)
    if not dry_run:
        for item in faulty:
            if not item.path.startswith(OPEN_JOBS):
                await _remove(store, item, quarantine=quarantine)
        remove_unfinished(report.unfinished)
    return report


async def _contents(store: ObjectStore, prefix: str, report: Report) -> AsyncGenerator[tuple[Item, bytes]]:
    async for item in items(store, prefix):
        content = await read(store, item.path)
        if content is not None:
            report.bytes += len(content)
            yield item, content


async def _remove(store: ObjectStore, item: Item, *, quarantine: bool) -> None:
    if quarantine:
        with explained("The store does not move damaged entries"), suppress(FileNotFoundError):
            await store.copy_async(item.path, QUARANTINE + item.path)
    await remove(store, item)


def main() -> int:
    """The exit status: 0 without faults, 1 with faults, 2 when the store cannot be checked."""
    parser = argparse.ArgumentParser(prog="python -m tensorkiln_server scrub", description="Verify a tensorkiln store.")
    parser.add_argument("--store", help="path or URL (default: KILN_STORE, or store in KILN_HOME)")
    parser.add_argument("--dry-run", action="store_true", help="report, and delete nothing")
    parser.add_argument("--quarantine", action="store_true", help="move damaged entries to quarantine/ in the store")
    parser.add_argument(
        "--lost-keys", action="store_true", help="run even if KILN_KEYS has none of the keys that signed the store"
    )
    parser.add_argument("--max-mib", type=_mib, help="then evict down to this size (default: KILN_STORE_MAX_MIB)")
    parser.add_argument("--max-age-h", type=_hours, help="and evict older entries (default: KILN_STORE_MAX_AGE_H)")
    purged = parser.add_mutually_exclusive_group()
    purged.add_argument(
        "--purge-build",
        metavar="BUILD_ID",
        type=_build_id,
        help="then delete all entries of this build of the compiler",
    )
    purged.add_argument("--purge-tenant", metavar="NAME", help="then delete all entries of this tenant")
    arguments = parser.parse_args()
    settings = read_settings()
    if settings is None:
        return 2
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    limits = bounds(
        settings.store_max_mib if arguments.max_mib is None else arguments.max_mib,
        settings.store_max_age_h if arguments.max_age_h is None else arguments.max_age_h,
    )
    try:
        report = asyncio.run(_run(arguments, settings, limits))
    except (UnavailableError, RequestError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(report, indent=2))
    return 0 if report["clean"] else 1


async def _run(arguments: argparse.Namespace, settings: Settings, limits: Bounds | None) -> dict[str, object]:
    mark = _mark(arguments, settings)
    store = open_store(arguments.store or settings.store_location, make=False)
    keyring = Keyring(settings.keys_directory)
    if not arguments.lost_keys:
        await require_signer(store, keyring.published(), settings.keys_directory)
    # The lowest level: each service requires its own, and compiles again what has less.
    notary = Notary(keyring, settings.worker, LEVELS[0])
    report = await scrub(store, notary, dry_run=arguments.dry_run, quarantine=arguments.quarantine)
    answer: dict[str, object] = {"clean": report.is_clean, **asdict(report), "purged": None, "evicted": None}
    if mark is not None:
        answer["purged"] = asdict(await purge(store, mark, dry_run=arguments.dry_run))
        limits = limits or Bounds()
    if limits is not None and not arguments.dry_run:
        answer["evicted"] = asdict(await evict(store, limits))
    return answer


def _mark(arguments: argparse.Namespace, settings: Settings) -> Mark | None:
    """What to purge, if anything. RequestError for a tenant without a part of the store of its own."""
    if arguments.purge_tenant is not None:
        return tenant_data(Tenants(settings.identity_directory), arguments.purge_tenant, settings.salt)
    return OfBuild(build_id=arguments.purge_build) if arguments.purge_build is not None else None


def _mib(text: str) -> int:
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return int(text)


def _hours(text: str) -> float:
    if not 0 <= float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of hours")
    return float(text)


def _build_id(text: str) -> str:
    if re.fullmatch(SHA256_PATTERN, text) is None:
        raise argparse.ArgumentTypeError("a build is named by 64 hexadecimal digits, as in /capabilities")
    return text


if __name__ == "__main__":
    end_process(main())
