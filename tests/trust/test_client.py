"""A client runs what its service signed for its question, and refuses everything else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.trust.keyring import KeyFile, Keyring
from tensorkiln import Client, Graph
from tensorkiln.errors import RequestError, UnavailableError, UntrustedArtifactError
from tensorkiln.trust import SignedRecord
from tests.service.bodies import graph
from tests.service.forked import forked_embedding
from tests.service.server import Server
from tests.trust.forgery import Proxy, Tamper, fresh_key, on, signed

X = np.arange(8, dtype=np.float32).reshape(4, 2)


def reason(run: Callable[[], object]) -> str:
    with pytest.raises(UntrustedArtifactError) as refused:
        run()
    return refused.value.details["reason"]


def works(client: Client, wire: Graph) -> None:
    np.testing.assert_array_equal(client.compile(wire)(X, n=2)[1], -X)


def resigned(key: KeyFile, **changes: Any) -> Callable[[Any], Any]:
    """Sign every record of an answer anew with `key`, after `changes`."""

    def change(answer: Any) -> Any:
        found: list[Any] = []
        for each in answer["signatures"]:
            record = SignedRecord.model_validate_json(json.dumps(each)).record
            record = record.model_copy(update={"key": key.kid, **changes})
            found.append(json.loads(signed(key, record).to_json()))
        return {**answer, "signatures": found}

    return change


def edited(change: Callable[[Any], object]) -> Callable[[Any], Any]:
    def apply(answer: Any) -> Any:
        change(answer)
        return answer

    return apply


@pytest.mark.parametrize(
    ("expected", "tamper"),
    [
        ("unsigned", on("/compile", edited(lambda answer: answer.pop("signatures")))),
        ("unsigned", on("/compile", edited(lambda answer: answer.update(signatures=[None])))),
        ("bad_signature", on("/compile", edited(lambda answer: answer["signatures"][0].update(signature="A" * 86)))),
        ("unknown_key", on("/compile", resigned(fresh_key()))),
        ("swapped_action", on("/compile", edited(lambda answer: answer["programs"][0].update(digest="0" * 64)))),
    ],
)
def test_an_answer_that_somebody_changed_is_refused(
    server: Server, small: Graph, tmp_path: Path, expected: str, tamper: Tamper
) -> None:
    with Proxy(server.url) as between, Client(between.url, cache_dir=tmp_path) as client:
        works(client, small)
        between.tamper = tamper
        with Client(between.url, cache_dir=tmp_path) as again:
            assert reason(lambda: again.compile(small)) == expected
        between.tamper = None
        works(client, small)


def test_the_true_program_of_another_graph_is_refused(server: Server, small: Graph, tmp_path: Path) -> None:
    other = Graph.model_validate(graph("sqrt"))
    with Client(server.url, cache_dir=tmp_path / "a") as client:
        client.compile(other)
    swapped = {"graph": json.loads(other.to_json()), "target": "cpu:x86-64-v3", "options": {}}
    true = server.compile(json.dumps(swapped).encode()).json()
    with (
        Proxy(server.url, on("/compile", lambda answer: true)) as between,
        Client(between.url, cache_dir=tmp_path / "b") as client,
    ):
        assert reason(lambda: client.compile(small, "cpu:x86-64-v3")) == "swapped_action"
        assert reason(lambda: client.compile(other, "cpu:x86-64-v2")) == "swapped_action"
        assert reason(lambda: client.compile(other, "cpu:x86-64-v3", {"fast_math": True})) == "swapped_action"
        assert client.compile_for(other, ["cpu:x86-64-v3"])


def test_fields_outside_the_signed_record_are_not_trusted(server: Server, small: Graph, tmp_path: Path) -> None:
    def swap_outputs(answer: Any) -> None:
        answer["programs"][0]["outputs"].reverse()

    with (
        Proxy(server.url, on("/compile", edited(swap_outputs))) as between,
        Client(between.url, cache_dir=tmp_path) as client,
    ):
        works(client, small)


def test_programs_and_artifacts_with_other_bytes_are_refused(server: Server, small: Graph, tmp_path: Path) -> None:
    with Proxy(server.url) as between:
        for position in range(2):
            seen: list[str] = []

            def tamper(path: str, content: bytes, position: int = position, seen: list[str] = seen) -> bytes:
                if not path.startswith("/artifacts/"):
                    return content
                seen.append(path)
                return content[:-1] + bytes([content[-1] ^ 1]) if len(seen) > position else content

            between.tamper = tamper
            with (
                Client(between.url, cache_dir=tmp_path / str(position)) as client,
                pytest.raises(UnavailableError, match="other bytes"),
            ):
                client.compile(small)
            assert seen
            kept = list((tmp_path / str(position) / "artifacts").glob("*"))
            assert [path.name for path in kept if sha256(path.read_bytes()).hexdigest() != path.name] == []


def test_a_program_that_names_foreign_code_is_not_loaded(server: Server, small: Graph, tmp_path: Path) -> None:
    with Client(server.url, cache_dir=tmp_path) as client:
        (mine,) = client.compile_for(small, ["cpu:x86-64-v3"])
        (other,) = client.compile_for(Graph.model_validate(graph("sin", rows=5)), ["cpu:x86-64-v3"])
        mixed = mine.model_copy(update={"kernels": other.kernels})
        assert reason(lambda: client.load(mixed)) == "swapped_artifact"


def test_only_valid_pinned_keys_count(
    server: Server, small: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = server.http.get("/keys").json()["keys"]
    jwks = tmp_path / "keys.json"
    jwks.write_text(server.http.get("/keys").text)
    for place, trusted in enumerate(([key["x"]], [str(jwks)], [fresh_key().x, key["x"]])):
        with Client(server.url, cache_dir=tmp_path / str(place), trusted_keys=trusted) as client:
            works(client, small)
    with Client(server.url, cache_dir=tmp_path / "other", trusted_keys=[fresh_key().x]) as client:
        assert reason(lambda: client.compile(small)) == "unknown_key"
    monkeypatch.setenv("KILN_TRUSTED_KEYS", f"{fresh_key().x},")
    with Client(server.url, cache_dir=tmp_path / "env") as client:
        assert reason(lambda: client.compile(small)) == "unknown_key"
    with pytest.raises(RequestError, match="neither 32 bytes"):
        Client(server.url, trusted_keys=["nonsense"])
    (tmp_path / "none").write_text('{"keys": []}')
    for nobody in ([""], [], [str(tmp_path / "none")]):
        with pytest.raises(RequestError, match="list of trusted keys is empty"):
            Client(server.url, trusted_keys=nobody)
    (tmp_path / "bad").write_text("{}")
    with pytest.raises(RequestError, match="not in the format of GET /keys"):
        Client(server.url, trusted_keys=[str(tmp_path / "bad")])
    jwks.write_text(json.dumps({"keys": [{**key, "exp": key["nbf"] + 1}]}))
    with Client(server.url, cache_dir=tmp_path / "ended", trusted_keys=[str(jwks)]) as client:
        assert reason(lambda: client.compile(small)) == "expired_key"


def test_isolation_below_the_demanded_level_is_refused(
    server: Server, small: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(server.url, cache_dir=tmp_path, min_isolation="external") as client:
        assert reason(lambda: client.compile(small)) == "isolation"
    monkeypatch.setenv("KILN_MIN_ISOLATION", "process")
    with Client(server.url, cache_dir=tmp_path) as client:
        works(client, small)
    with pytest.raises(RequestError, match="landlock"):
        Client(server.url, min_isolation="strong")


def test_the_keys_of_first_use_are_remembered_by_the_next_client(server: Server, small: Graph, tmp_path: Path) -> None:
    thief = fresh_key()

    def impersonate(path: str, content: bytes) -> bytes:
        if path == "/keys":
            return json.dumps({"keys": [thief.public.model_dump(mode="json")]}).encode()
        return json.dumps(resigned(thief)(json.loads(content))).encode() if path == "/compile" else content

    with Proxy(server.url) as between:
        with Client(between.url, cache_dir=tmp_path / "a") as client:
            works(client, small)
        between.tamper = impersonate
        with (
            Client(between.url, cache_dir=tmp_path / "b") as client,
            pytest.raises(UntrustedArtifactError, match="set up anew, delete") as refused,
        ):
            client.compile(small)
        os.remove(refused.value.details["file"])
        with Client(between.url, cache_dir=tmp_path / "c") as client:
            works(client, small)


def test_a_client_follows_rotations_and_no_stolen_key(small: Graph, tmp_path: Path) -> None:
    keys = tmp_path / "server" / "keys"
    with Server(tmp_path / "server") as server:
        with Client(server.url, cache_dir=tmp_path / "a") as client:
            works(client, small)
        newer = Keyring(keys).rotate()
        await_key(server, newer.kid)
        with Client(server.url, cache_dir=tmp_path / "b") as client:
            digest = client.compile(Graph.model_validate(graph("sqrt"))).compiled.digest
        answer = server.http.get(f"/programs/{digest}/signature").json()
        assert answer["record"]["key"] == newer.kid
        for kid in Keyring(keys).public():
            Keyring(keys).revoke(kid)
        await_key(server, Keyring(keys).signer().kid)
        with Client(server.url, cache_dir=tmp_path / "c") as client:
            assert reason(lambda: client.compile(small)) == "unknown_key"
        with Client(server.url, cache_dir=tmp_path / "c", trusted_keys=[Keyring(keys).signer().x]) as client:
            works(client, small)


def await_key(server: Server, kid: str) -> None:
    """Wait until the service has looked at its keys again."""
    deadline = time.monotonic() + 10
    while server.http.get("/keys").json()["keys"][0]["kid"] != kid:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # Another look, so that keys of the same second are in order.
    time.sleep(1.1)


def test_the_embedded_service_hands_its_keys_over_itself(small: Graph, tmp_path: Path) -> None:
    keys = tmp_path / "home" / "keys"
    with forked_embedding(), Client(cache_dir=tmp_path / "home") as client:
        works(client, small)
        Keyring(keys).revoke(Keyring(keys).signer().kid)
        time.sleep(1.1)
        assert client.compile(small).compiled.cache.status == "miss"
        works(client, small)
