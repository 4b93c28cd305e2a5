"""An order that a worker refuses ends: the same message would only be sent again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from service.engine.farm.ledger import Ledger, Task
from service.engine.farm.message import Message
from service.engine.farm.statements import Statements
from service.settings import Settings
from service.store.location import open_store
from service.store.records import Records
from service.trust.keyring import Keyring
from service.trust.notary import Notary
from service.worker.bench import Bench
from tensorkiln.errors import InfrastructureError, error_from_problem
from tests.trust.stores import action


def test_an_order_of_another_build_comes_to_an_error_that_stays(tmp_path: Path) -> None:
    async def run() -> None:
        settings = Settings(home=tmp_path)
        store = open_store(settings.store_location)
        notary = Notary(Keyring(settings.keys_directory), "service", "process")
        ledger = Ledger(store, Records(store), Statements(notary))
        other = action(1)  # its build is none
        task = Task("service", "task", other.components, False, None, False, False, 5.0)
        await ledger.open(task)
        bench = Bench(settings)
        assert await bench.work(Message("service", "task", 1, other.digest, 5.0)) == "refused"
        await bench.close()
        assert await ledger.finished("service") == ["task"]
        result = await ledger.result(task)
        assert result is not None
        assert result.problem is not None
        error = error_from_problem(result.problem)
        assert error.code == "internal"
        assert not isinstance(error, InfrastructureError)

    asyncio.run(run())
