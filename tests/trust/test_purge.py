"""What a build of the compiler made, or a tenant has, can be taken out of a store, and nothing else goes with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from service.action import Action
from service.engine.reproducer import compile_reproducer
from service.identity.caller import EVERYTHING, Caller
from service.identity.keyring import Keyring
from service.identity.register import TenantRecord
from service.identity.tenancy import Access, salt_of
from service.store.attempts import Attempt, Crashes
from service.store.evict import Bounds, evict
from service.store.programs import Entry
from service.store.repeats import Repeat
from service.trust.notary import with_signatures
from service.upkeep.purge import Purged, build_data, purge, tenant_data
from service.upkeep.scrub import scrub
from tensorkiln.compiler_build import build
from tensorkiln.errors import RequestError
from tensorkiln.spec.abi import ABI_VERSION
from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded
from tests.trust.conftest import Ran, Scrubbed
from tests.trust.stores import Stocked, action
from tests.trust.test_scrub_command import require_refused

GOOD, BAD = "a" * 64, "b" * 64


async def published(stocked: Stocked, wanted: Action, told: Mapping[str, Any], scope: str = "") -> tuple[Entry, str]:
    """A program that says so, with an artifact that all have, and an answer: its entry, and what a job came to."""
    content = json.dumps(told).encode()
    program, shared = await stocked.blobs.put(content), await stocked.blobs.put(b"shared")
    entry = await stocked.programs.save(wanted, Entry(program, (shared,)))
    stocked.nearest.add(wanted, scope)
    await stocked.nearest.settle()
    answer = with_signatures(b'{"programs":[%b]}' % content, [entry.signature])
    repeat = Repeat(answer, entry.blobs, (wanted.digest,), isolation="process")
    await stocked.repeats.save(stocked.repeats.key(wanted.digest), repeat)
    return entry, await stocked.blobs.put(answer + b"\n")


async def made(stocked: Stocked, number: int, build: str) -> Action:
    """A program of a build, with an artifact that all have, an answer, and a job that came to it."""
    wanted = replace(action(number), build_id=build)
    _, answer = await published(stocked, wanted, {"number": number, "provenance": {"build_id": build}})
    job = wanted.digest[:32]
    await stocked.records.put(f"jobs/ended/{job[:2]}/{job}", {"id": job, "state": "done", "answer": answer})
    return wanted


async def is_there(stocked: Stocked, wanted: Action) -> list[bool]:
    job = wanted.digest[:32]
    near = await stocked.nearest.to(wanted, "")
    return [
        await stocked.is_whole(wanted),
        await stocked.repeats.find(stocked.repeats.key(wanted.digest)) is not None,
        await stocked.records.get(f"jobs/ended/{job[:2]}/{job}") is not None,
        near is not None and near.digest == wanted.digest,
    ]


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_all_of_a_build_goes_and_all_of_another_stays(scrubbed: Scrubbed, stocked: Stocked, is_forgotten: bool) -> None:
    async def fill() -> tuple[Action, Action]:
        await made(stocked, 3, BAD)
        bad, good = await made(stocked, 1, BAD), await made(stocked, 2, GOOD)
        if is_forgotten:  # the program was evicted, and its answer was not
            await stocked.records.delete(str(stocked.path(bad).relative_to(stocked.root)))
        stocked.age("blobs")
        return bad, good

    bad, good = asyncio.run(fill())
    before = stocked.files()
    purged = {"programs": 1 if is_forgotten else 2, "answers": 2, "jobs": 2, "crashes": 0, "rights": 0}
    status, report = scrubbed("--purge-build", BAD, "--dry-run")
    assert (status, report["purged"], report["evicted"]) == (0, purged, None)
    assert stocked.files() == before
    status, report = scrubbed("--purge-build", BAD)
    assert (status, report["purged"]) == (0, purged)
    # A program, its answer, and that of its job; what others share with it stays.
    assert report["evicted"]["blobs"] == 2 * 3
    assert not any(BAD.encode() in path.read_bytes() for path in stocked.files())
    assert asyncio.run(is_there(stocked, bad)) == [False] * 4
    assert asyncio.run(is_there(stocked, good)) == [True] * 4
    assert asyncio.run(scrub(stocked.store, stocked.notary)).is_clean
    assert scrubbed("--purge-build", BAD)[1]["purged"] == asdict(Purged())


async def test_untrusted_and_damaged_entries_do_not_stop_a_purge(stocked: Stocked) -> None:
    for number, signed in enumerate(("", "[]", '{"record":[]}', '{"record":{"build_id":1}}', [1], None)):
        await stocked.records.put(f"programs/ab/{number}", {"signed": signed})
    await stocked.records.put("programs/ab/x", {"signed": json.dumps({"record": {"build_id": BAD}})})
    await stocked.records.put("requests/ab/x", {"answer": "0" * 64, "blobs": ["1" * 64]})
    await stocked.records.put("requests/ab/y", {"answer": 5})
    await stocked.records.put("jobs/ended/ab/x", {"answer": ["../../keys"]})
    await stocked.records.put("crashes/ab/x", {"problem": {"details": {"reproducer": 5}}})
    (stocked.root / "programs/ab/torn").write_bytes(b"")
    assert await purge(stocked.store, build_data(BAD)) == Purged(programs=1)
    assert len(stocked.files("programs")) == 7


GRAPH = b'{"schema":1,"nodes":[]}'


@dataclass(frozen=True)
class Home:
    """A store and a keyring, as services and an operator have them."""

    path: Path

    @property
    def stocked(self) -> Stocked:
        return Stocked.at(self.path / "store")

    @property
    def keyring(self) -> Keyring:
        return Keyring(self.path / "identity")

    def action(self, tenant: str, number: int) -> Action:
        """The same of each tenant, but for the salt."""
        return replace(action(number), salt=self.scope(tenant), build_id=build().build_id)

    def caller(self, tenant: str) -> Caller:
        (key,) = (key for key in self.keyring.register.keys if key.tenant == tenant)
        return Caller(key.holder, tenant, tenant, EVERYTHING)

    def scope(self, tenant: str) -> str:
        return salt_of(tenant, "", self.keyring.secret)

    async def fill(self, tenant: str, number: int) -> Action:
        """All that a tenant leaves behind with a program: its answer, jobs, rights, and a crash."""
        stocked, wanted, who = self.stocked, self.action(tenant, number), self.caller(tenant)
        entry, answer = await published(stocked, wanted, {"digest": wanted.digest}, self.scope(tenant))
        await stocked.records.put(f"jobs/ended/ab/{tenant}-{number}", {"caller": who.to_record(), "answer": answer})
        reproducer = await stocked.blobs.put(b"reproducer of %d" % number)
        failed = {"caller": who.to_record(), "answer": None, "error": {"details": {"reproducer": reproducer}}}
        await stocked.records.put(f"jobs/ended/ab/{tenant}-{number}-failed", failed)
        access = Access(stocked.records)
        await access.grant(who, [wanted.digest, *entry.blobs])
        await access.grant_alone(who, reproducer)
        crashing = replace(wanted, abi=ABI_VERSION, graph=sha256(GRAPH).hexdigest())
        told = {"details": {"reproducer": await stocked.blobs.put(compile_reproducer(GRAPH, crashing))}}
        await stocked.crash(crashing.digest, told)
        return wanted

    def age(self, *folders: str) -> None:
        self.stocked.age(*folders)

    def snapshot(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.stocked.files()}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    for tenant in ("acme", "bolt"):
        made.keyring.make("", tenant, EVERYTHING, None)
    return made


def test_all_of_a_tenant_goes_and_all_of_another_stays(scrubbed: Scrubbed, home: Home) -> None:
    bolts = asyncio.run(home.fill("bolt", 1))
    home.age("access", "blobs")
    before = home.snapshot()
    acmes = asyncio.run(home.fill("acme", 1))
    home.age("access", "blobs")
    full = home.snapshot()

    purged = {"programs": 1, "answers": 1, "jobs": 2, "crashes": 1, "rights": 4}
    status, report = scrubbed("--purge-tenant", "acme", "--dry-run")
    assert (status, report["purged"], report["evicted"]) == (0, purged, None)
    assert home.snapshot() == full
    status, report = scrubbed("--purge-tenant", "acme")
    assert (status, report["purged"]) == (0, purged)
    # The other tenant's are what there was, byte for byte; what both have stays: the artifact, the reproducers.
    assert home.snapshot() == before
    assert scrubbed("--purge-tenant", "acme")[1]["purged"] == dict.fromkeys(purged, 0)

    async def look() -> None:
        stocked = home.stocked
        assert not await stocked.is_whole(acmes)
        assert await stocked.is_whole(bolts)
        assert await stocked.repeats.find(stocked.repeats.key(bolts.digest)) is not None
        near = await stocked.nearest.to(bolts, home.scope("bolt"))
        assert near is not None
        assert near.digest == bolts.digest
        for tenant, may_read in (("acme", False), ("bolt", True)):
            access = Access(stocked.records)
            assert await access.allows(home.caller(tenant), sha256(b"shared").hexdigest()) is may_read
        assert (await scrub(stocked.store, stocked.notary)).is_clean

    asyncio.run(look())


def test_the_salt_selects_the_entries(scrubbed: Scrubbed, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(home.fill("acme", 1))
    monkeypatch.setenv("KILN_SALT", "new")
    assert scrubbed("--purge-tenant", "acme", "--dry-run")[1]["purged"]["programs"] == 0


async def test_running_jobs_survive_a_purge(home: Home) -> None:
    stocked = home.stocked
    wanted, body = home.action("acme", 1), await stocked.blobs.put(b"body")
    who = home.caller("acme")
    await stocked.records.put("jobs/open/1", {"caller": who.to_record(), "body": body})
    open_order = {"action": wanted.components}
    await stocked.records.put("farm/service/open/1", open_order)
    await Access(stocked.records).grant(who, [body])
    attempt = await Crashes(stocked.records, stocked.notary).begin(wanted.digest)
    assert isinstance(attempt, Attempt)
    home.age("blobs")
    before = home.snapshot()
    assert await purge(stocked.store, tenant_data(home.keyring, "acme", "")) == Purged()
    await evict(stocked.store, Bounds())
    assert home.snapshot() == before


async def test_a_forged_record_takes_nothing_of_another_tenant_with_it(home: Home) -> None:
    stocked, bolts = home.stocked, await home.fill("bolt", 1)
    entry = await stocked.entry(bolts.digest)
    mine = home.action("acme", 1)
    signed = {"action": mine.digest, "request": _request(mine), "build_id": mine.build_id, "program": entry.program}
    record = {"signed": json.dumps({"record": signed})}
    await stocked.records.put(f"programs/{mine.digest[:2]}/{mine.digest}", record)
    await stocked.records.put("programs/ab/abc", record)  # by another name, it is nobody's
    for name, strange in enumerate(("", "[]", '{"record":{"request":1,"build_id":2}}', [1], None)):
        await stocked.records.put(f"programs/ab/{name}", {"signed": strange})
    await stocked.records.put("jobs/ended/ab/x", {"caller": "acme", "answer": await stocked.blobs.put(b"[]")})
    purged = await purge(stocked.store, tenant_data(home.keyring, "acme", ""))
    assert purged == Purged(programs=1)
    assert await stocked.repeats.find(stocked.repeats.key(bolts.digest)) is not None


def _request(wanted: Action) -> dict[str, Any]:
    return {name: value for name, value in wanted.components.items() if name not in ("build_id", "salt")}


@pytest.mark.parametrize("tenants", ["shared", "none"])
def test_a_purge_by_tenant_needs_a_store_by_tenant(ran: Ran, tmp_path: Path, tenants: str) -> None:
    home = Home(tmp_path)
    if tenants == "shared":
        home.keyring.set_tenant("friends", TenantRecord(shared=True))
        assert len(home.keyring.secret) == 32
    asyncio.run(home.stocked.save(1))
    before = home.snapshot()
    said = "shares its store with others" if tenants == "shared" else "There are no tenants"
    require_refused(ran("service.upkeep.scrub", "--purge-tenant", "friends", KILN_HOME=str(tmp_path)), said)
    assert home.snapshot() == before
    assert (tmp_path / "identity" / "secret").exists() is (tenants == "shared")


@pytest.mark.parametrize("name", ["", " ", "-", "a b"])
def test_an_invalid_tenant_is_refused_and_does_not_purge_all(home: Home, name: str) -> None:
    assert len(home.keyring.secret) == 32
    with pytest.raises(RequestError, match="No tenant"):
        tenant_data(home.keyring, name, "")


def test_a_running_service_goes_on_and_compiles_what_is_gone_again(scrubbed: Scrubbed, home: Home) -> None:
    body, reworded = encoded(compile_body()), json.dumps(compile_body(), indent=1).encode()

    def ask(tenant: str, content: bytes) -> tuple[str, dict[str, Any]]:
        answer = server.send(keys[tenant], "POST", "/compile", content)
        assert answer.status_code == 200, answer.text
        (program,), (signed,) = answer.json()["programs"], answer.json()["signatures"]
        return program["cache"]["status"], signed["record"]

    def reads(tenant: str, record: dict[str, Any]) -> set[int]:
        digests = [record["program"], *record["artifacts"]]
        paths = [f"/programs/{record['action']}", *(f"/artifacts/{digest}" for digest in digests)]
        return {server.send(keys[tenant], "GET", path).status_code for path in paths}

    with Guarded(home.path) as server:
        keys = {tenant: server.key(tenant) for tenant in ("acme", "bolt")}
        first = {tenant: ask(tenant, body)[1] for tenant in keys}
        home.age("access", "blobs")
        status, report = scrubbed("--purge-tenant", "acme")
        rights = report["purged"].pop("rights")
        assert (status, report["purged"]) == (0, {"programs": 1, "answers": 1, "jobs": 0, "crashes": 0})
        assert rights == 2 + len(first["acme"]["artifacts"])
        assert ask("bolt", reworded)[0] == "hit"
        assert reads("bolt", first["bolt"]) == {200}
        status, record = ask("acme", body)
        assert (status, record["action"]) == ("miss", first["acme"]["action"])
        assert reads("acme", record) == {200}
