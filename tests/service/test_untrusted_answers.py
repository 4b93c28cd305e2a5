"""What a compile says of itself is not taken for true: whatever is wrong with its answer is a crash of its own."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest

from service.body import Body
from service.engine.engine import WARM_UP, Engine
from service.identity.authenticator import Authenticator
from service.identity.caller import LOCAL, acting_as
from service.sandbox.sandbox import Sandbox
from service.settings import Settings
from tensorkiln.errors import CrashedError
from tests.service.bodies import compile_body, encoded
from tests.service.warm_ups import LIES

LIE = "tests.service.warm_ups:lie"


def test_an_answer_that_lacks_or_garbles_something_is_a_crash(home: Path) -> None:
    content = encoded(compile_body())
    body = Body(content, sha256(content).hexdigest())

    async def run() -> dict[str, str]:
        settings = Settings(home=home, test_hooks=True)
        engine = Engine(settings, Sandbox((WARM_UP, LIE), test_hooks=True), Authenticator(settings).keyring)
        found: dict[str, str] = {}
        try:
            await engine.start()
            for lie in LIES:
                with acting_as(LOCAL), pytest.raises(CrashedError) as caught:
                    await engine.compile(body, lie)
                assert caught.value.details["stage"] == "return"
                found[lie] = caught.value.message
        finally:
            await engine.close()
        return found

    found = asyncio.run(run())
    assert "artifacts" in found["no_artifacts"]
    assert "stages" in found["a_list_of_stages"]
    assert "does not give" in found["no_answer"]
