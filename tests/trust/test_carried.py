"""Programs in files: the same bytes from every service, believed by the word of a pinned key beside them."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tensorkiln import Client, Graph, Program
from tensorkiln.bundle import read_bundle, write_bundle
from tensorkiln.canonical import canonicalize
from tensorkiln.errors import RequestError, TensorkilnError, UnavailableError, UntrustedArtifactError
from tensorkiln.spec import CompiledProgram
from tensorkiln.spec.names import Names
from tensorkiln.target import Target
from tensorkiln.trust import SignedRecord
from tensorkiln.trust.carried import read_trusted, signature_path
from tests.contract.random_graphs import disguised, random_graph
from tests.service.bodies import graph
from tests.service.server import Server
from tests.trust.forgery import altered, fresh_key, signed

X = np.arange(8, dtype=np.float32).reshape(4, 2)
Edit = Callable[[SignedRecord], SignedRecord]


@pytest.fixture
def kept(server: Server, small: Graph, tmp_path: Path) -> Path:
    """A bundle of `small`, with its signature."""
    path = tmp_path / "small.kiln"
    with Client(server.url, cache_dir=tmp_path / "cache") as client:
        (compiled,) = client.compile_for(small, ["cpu:native"])
        client.save(compiled, path)
    return path


@pytest.fixture
def pin(server: Server) -> str:
    return server.http.get("/keys").json()["keys"][0]["x"]


def reason(path: Path, pin: str, level: str | None = None) -> str:
    with pytest.raises(UntrustedArtifactError) as refused:
        Program.from_bundle(path, trusted_keys=[pin], min_isolation=level)
    return refused.value.details["reason"]


def test_a_bundle_runs_by_the_word_of_a_pinned_key(kept: Path, pin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for trusted in ([pin], [fresh_key().x, pin], None):
        results = Program.from_bundle(kept, trusted_keys=trusted)(X, n=2)
        np.testing.assert_array_equal(results[1], -X)
    monkeypatch.setenv("KILN_TRUSTED_KEYS", fresh_key().x)
    with pytest.raises(UntrustedArtifactError):
        Program.from_bundle(kept)


def test_a_bundle_that_nobody_signed_is_refused_where_keys_are_pinned(kept: Path, pin: str) -> None:
    signature_path(kept).write_text("{}")
    assert reason(kept, pin) == "unsigned"
    signature_path(kept).unlink()
    assert reason(kept, pin) == "unsigned"
    assert reason(kept, fresh_key().x) == "unsigned"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda mine: altered(mine, worker="somebody"), "bad_signature"),
        (lambda mine: altered(mine, program="0" * 64), "bad_signature"),
        (lambda mine: signed(fresh_key(), altered(mine, key=fresh_key().kid).record), "unknown_key"),
    ],
)
def test_a_signature_that_is_none_is_refused(kept: Path, pin: str, edit: Edit, expected: str) -> None:
    beside = signature_path(kept)
    beside.write_bytes(edit(SignedRecord.model_validate_json(beside.read_bytes())).to_json())
    assert reason(kept, pin) == expected


def test_isolation_below_the_demanded_level_is_refused(kept: Path, pin: str) -> None:
    assert reason(kept, pin, "external") == "isolation"
    with pytest.raises(RequestError, match="give trusted_keys"):
        Program.from_bundle(kept, min_isolation="external")


def test_an_empty_set_of_keys_trusts_no_program(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none").write_text('{"keys": []}')
    monkeypatch.setenv("KILN_TRUSTED_KEYS", str(tmp_path / "none"))
    with pytest.raises(RequestError, match="list of trusted keys is empty"):
        Program.from_bundle(kept)
    monkeypatch.setenv("KILN_TRUSTED_KEYS", "")
    Program.from_bundle(kept)


def test_anothers_signature_is_refused(server: Server, kept: Path, small: Graph, pin: str, tmp_path: Path) -> None:
    with Client(server.url, cache_dir=tmp_path / "cache") as client:
        (other,) = client.compile_for(Graph.model_validate(graph("sin", rows=5)), ["cpu:native"])
        client.save(other, tmp_path / "other.kiln")
        signature_path(kept).write_bytes(signature_path(tmp_path / "other.kiln").read_bytes())
        assert reason(kept, pin) == "swapped_action"
        # Its bytes under the digest that was signed, and with them everything that a bundle has to agree in.
        (mine,) = client.compile_for(small, ["cpu:native"])
        client.save(mine, kept)
        forged = other.model_copy(update={"digest": mine.digest})
        write_bundle(kept, forged, client.artifact)
        assert reason(kept, pin) == "swapped_artifact"
        with pytest.raises(UntrustedArtifactError):
            client.save(forged, tmp_path / "forged.kiln")
        assert not (tmp_path / "forged.kiln").exists()


def test_every_change_of_a_signed_bundle_is_refused_or_of_no_effect(kept: Path, pin: str) -> None:
    whole, original = kept.read_bytes(), read_trusted(kept, [pin])
    for position in range(0, len(whole), max(1, len(whole) // 150)):
        kept.write_bytes(whole[:position] + bytes([whole[position] ^ 0x20]) + whole[position + 1 :])
        with suppress(TensorkilnError):
            assert read_trusted(kept, [pin]) == original


def test_two_services_make_the_same_file_whoever_asks_and_however(small: Graph, tmp_path: Path) -> None:
    files: list[bytes] = []
    for place, options in enumerate(({}, {"dump_stages": True})):
        with (
            Server(tmp_path / f"home{place}") as server,
            Client(server.url, cache_dir=tmp_path / f"c{place}") as client,
        ):
            (compiled,) = client.compile_for(small, ["cpu:x86-64-v3"], options)
            client.save(compiled, tmp_path / f"{place}.kiln")
            record = client.signature(compiled.digest).record
            content = server.http.get(f"/programs/{compiled.digest}").content
            assert sha256(content).hexdigest() == record.program
            timed = [stage for stage in compiled.stages if stage.name not in ("return", "origins")]
            assert all(stage.seconds > 0 for stage in timed)
            assert bool(record.stages) == any(stage.dump for stage in compiled.stages) == bool(options)
        files.append((tmp_path / f"{place}.kiln").read_bytes())
    assert files[0] == files[1]


def test_names_are_found_again_of_every_program_and_its_disguises() -> None:
    from passes.compile import CompileRequest, compile_request

    target, tried = Target.parse("cpu:x86-64-v2"), 0
    for seed in range(12):
        wire = disguised(Random(seed + 1), random_graph(Random(seed)))
        found = canonicalize(Graph.model_validate(wire))
        try:
            canonical = compile_request(CompileRequest(found.graph, target)).program
        except TensorkilnError:
            continue
        named = canonical.renamed(found.symbols, found.vars, found.nodes).model_copy(update={"name": "mine"})
        again = CompiledProgram.model_validate_json(canonical.model_dump_json())
        assert Names.between(again, named).of(again) == named
        tried += 1
    assert tried > 6


def test_a_changed_program_is_not_saved_under_anothers_record(server: Server, small: Graph, tmp_path: Path) -> None:
    with Client(server.url, cache_dir=tmp_path / "cache") as client:
        (compiled,) = client.compile_for(small, ["cpu:native"])
        client.save(compiled, tmp_path / "kept.kiln")
        (other,) = client.compile_for(small, ["cpu:x86-64-v2"])
        changed = other.model_copy(update={"outputs": other.outputs[::-1]})
        before = {path: path.read_bytes() for path in tmp_path.glob("kept*")}
        with pytest.raises(UnavailableError, match="is not the one that was signed"):
            client.save(changed, tmp_path / "kept.kiln")
    assert {path: path.read_bytes() for path in tmp_path.glob("*kept*")} == before


def test_a_saved_program_is_a_bundle_that_any_tool_opens(kept: Path) -> None:
    with zipfile.ZipFile(kept) as archive:
        names = json.loads(archive.read("names.json"))
        program = json.loads(archive.read("program.json"))
    assert list(names["symbols"].values()) == ["n"]
    assert program["symbols"][0]["name"] == "s0"
    assert read_bundle(kept).program.symbols[0].name == "n"
    assert os.stat(signature_path(kept)).st_mode & 0o777 == 0o644
