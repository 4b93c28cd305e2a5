"""Nothing tells one tenant that another has sent the same body."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from service.identity.caller import LOCAL, acting_as
from service.store.blobs import Blobs
from service.store.location import open_store
from service.wire.body import Body
from tests.service.house import bodies_in

CONTENT = b'{"graph":{}}'
BODY = Body(CONTENT, sha256(CONTENT).hexdigest())
ONE, OTHER = (replace(LOCAL, tenant=name) for name in ("one", "other"))


async def test_a_body_of_two_tenants_is_stored_twice(tmp_path: Path) -> None:
    stored = bodies_in(open_store(str(tmp_path)))
    digests: list[str] = []
    for who in (ONE, OTHER, ONE):
        with acting_as(who):
            digests.append(await stored.put(BODY, durable=False))
            assert await stored.get(digests[-1]) == BODY
    assert digests[0] == digests[2]
    assert len({*digests, BODY.digest}) == 3


async def test_a_body_that_was_stored_as_it_is_comes_back(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    digest = await Blobs(store).put(CONTENT)
    with acting_as(ONE):
        assert await bodies_in(store).get(digest) == BODY
