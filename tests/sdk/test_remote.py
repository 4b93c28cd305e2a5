from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tensorkiln import Client, Graph
from tensorkiln.embedded import embedded_service
from tensorkiln.errors import UnavailableError

if TYPE_CHECKING:
    from tests.sdk.conftest import RemoteService


def test_a_remote_service_compiles_and_its_artifacts_are_kept(
    remote: RemoteService, layer: Graph, tmp_path: Path
) -> None:
    with Client(remote.url, cache_dir=tmp_path / "mine") as client:
        program = client.compile(layer)
        x, w = np.ones((2, 8), np.float32), np.ones((8, 3), np.float32)
        np.testing.assert_array_equal(program(x, w, n=2)[0], np.full((2, 3), 8, np.float32))
    kept = {path.name for path in (tmp_path / "mine" / "artifacts").iterdir()}
    assert kept == program.compiled.artifacts
    assert embedded_service(tmp_path / "mine", 60.0).pid is None

    assert remote.stop() == 0
    with Client(remote.url, cache_dir=tmp_path / "mine") as offline:
        again = offline.load(program.compiled)
        np.testing.assert_array_equal(again(x, w, n=2)[0], program(x, w, n=2)[0])
        with pytest.raises(UnavailableError, match="cannot be reached"):
            offline.compile(layer)


def test_the_url_may_come_from_the_environment(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_URL", served + "/")
    with Client() as client:
        assert client.capabilities()["targets"]
