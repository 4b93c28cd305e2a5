"""A StableHLO module stands where a graph does."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import InvalidGraphError, NotFoundError, RequestError, UnsupportedGraphError
from tensorkiln.expr import symbol
from tensorkiln.stablehlo import StableHlo, SymbolicArguments

DOUBLED = StableHlo(
    """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
""",
    SymbolicArguments([[symbol("n")]], {"n": (1, 8)}),
)


def text(body: str) -> StableHlo:
    return StableHlo(f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} return %0 : tensor<4xf32> }}")


pytestmark = pytest.mark.usefixtures("embedding")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kiln-home")


def test_a_module_is_compiled_validated_and_explained_like_its_graph(home: Path) -> None:
    with Client(cache_dir=home) as client:
        graph = client.translate(DOUBLED)
        assert dict(graph.symbols) == {"n": (1, 8)}
        program = client.compile(DOUBLED)
        assert np.array_equal(program(np.arange(3, dtype=np.float32), n=3)[0], [0, 2, 4])
        assert program.compiled.digest == client.compile(graph).compiled.digest
        assert client.validate(DOUBLED)["digest"] == client.validate(graph)["digest"]
        assert client.explain(DOUBLED)["actions"] == client.explain(graph)["actions"]
        (outcome,) = client.compile_many([DOUBLED], ["cpu:native"])
        assert outcome.compiled is not None
        assert outcome.compiled.digest == program.compiled.digest


def test_translations_are_kept_for_offline_use(home: Path) -> None:
    with Client(cache_dir=home) as client:
        digest = client.compile(DOUBLED).compiled.digest
    with Client(cache_dir=home, offline=True) as client:
        assert client.compile(DOUBLED).compiled.digest == digest
        with pytest.raises(NotFoundError, match="no translation"):
            client.compile(text("%0 = stablehlo.abs %x : tensor<4xf32>"))
    (kept,) = (home / "translations").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b'"add"', b'"mul"'))
    with Client(cache_dir=home, offline=True) as client, pytest.raises(NotFoundError, match="no translation"):
        client.compile(DOUBLED)


def test_a_kept_graph_that_is_understood_no_more_is_forgotten(tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path) as client:
        digest = client.compile(DOUBLED).compiled.digest
    (kept,) = (tmp_path / "translations").iterdir()
    text = b'{"schema": 0}'
    kept.write_bytes(sha256(text).hexdigest().encode() + text)
    with Client(cache_dir=tmp_path, offline=True) as client, pytest.raises(NotFoundError, match="no translation"):
        client.compile(DOUBLED)
    assert not kept.exists()
    with Client(cache_dir=tmp_path) as client:
        assert client.compile(DOUBLED).compiled.digest == digest


def test_a_module_that_is_refused_says_why(home: Path) -> None:
    custom = "%0 = stablehlo.custom_call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>"
    with Client(cache_dir=home) as client:
        for error, said, module in (
            (InvalidGraphError, "not a StableHLO module", StableHlo("not a module")),
            (InvalidGraphError, "does not begin", StableHlo(b"not a module")),
            (UnsupportedGraphError, "custom call 'other'", text(custom)),
            (RequestError, "no bounds in dims", StableHlo(DOUBLED.module, SymbolicArguments([[symbol("n")]], {}))),
            (
                RequestError,
                "differs from the one in shapes",
                StableHlo(DOUBLED.module, SymbolicArguments([[2, 2]], {})),
            ),
            (UnsupportedGraphError, "has no bounds", StableHlo(DOUBLED.module)),
        ):
            with pytest.raises(error, match=said):
                client.compile(module)
