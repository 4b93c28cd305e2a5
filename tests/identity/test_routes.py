"""Every route of a real service, with and without a credential."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from service.identity.authenticator import PUBLIC
from service.identity.caller import Scope
from service.identity.keyring import new_key
from service.server.serve import create_app
from service.settings import Settings
from tests.identity.guarded import GUARDED, Guarded, artifacts, program, refusal
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import at_rest

pytestmark = GUARDED
BODY = encoded(compile_body())
ZEROS = "0" * 64


def every_route() -> list[tuple[str, str]]:
    paths = create_app(Settings()).openapi()["paths"]
    return [
        (method.upper(), path.replace("{digest}", ZEROS).replace("{job}", "0" * 32).replace("{name}", "parse"))
        for path, operations in paths.items()
        for method in operations
    ]


@pytest.mark.parametrize(("method", "path"), [route for route in every_route() if route[1] not in PUBLIC])
def test_a_route_asks_for_a_credential(guarded: Guarded, method: str, path: str) -> None:
    answer = guarded.send(None, method, path, BODY if method == "POST" else None)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="tensorkiln"'
    if method != "HEAD":
        assert refusal(answer) == (401, "auth.missing")
        assert answer.json()["retryable"] is False


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_a_probe_needs_no_credential(guarded: Guarded, path: str) -> None:
    assert guarded.send(None, "GET", path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/openapi.json",
        "/docs",
        "/docs/assets/favicon.png",
        "/unknown",
        "/metrics",
        "/artifacts//",
        "/explore/",
        "/pages/",
        "/%2e%2e/docs",
    ],
)
def test_routes_outside_the_contract_need_credentials(guarded: Guarded, path: str) -> None:
    assert guarded.send(None, "GET", path).status_code == 401


@pytest.mark.parametrize("path", ["/healthz/", "/HEALTHZ", "/capabilities/../compile", "/healthz/../compile"])
def test_a_path_like_a_public_one_is_not_public(guarded: Guarded, path: str) -> None:
    assert guarded.send(None, "GET", path).status_code == 401


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Basic a2lsbjp4", "Bearer x", "Bearer a.b.c", "Bearer é.é.é", "kiln_x"]
)
def test_a_header_that_says_nothing_is_refused(guarded: Guarded, header: str) -> None:
    answer = guarded.http.get("/openapi.json", headers={"Authorization": header.encode("latin-1")})  # type: ignore[dict-item]
    assert refusal(answer) == (401, "auth.invalid")
    assert answer.headers["www-authenticate"] == 'Bearer realm="tensorkiln", error="invalid_token"'


def test_a_key_opens_the_service_until_it_is_revoked(guarded: Guarded) -> None:
    key = guarded.key("until-revoked")
    assert guarded.send(key, "POST", "/compile", BODY).status_code == 200
    guarded.keyring.revoke(key.split("_")[1])
    answer = guarded.send(key, "POST", "/compile", BODY)
    assert refusal(answer) == (401, "auth.invalid")
    assert "revoked" in answer.json()["detail"]


def test_an_expired_key_is_told_so(guarded: Guarded) -> None:
    key = guarded.key("expired", lifetime=timedelta(seconds=-1))
    assert refusal(guarded.send(key, "POST", "/validate", BODY)) == (401, "auth.expired")


def test_a_key_of_nobody_and_a_mistyped_one_are_refused(guarded: Guarded) -> None:
    key = guarded.key("typist")
    for wrong in (new_key().text, key[:-1], key[:-1] + ("a" if key[-1] != "a" else "b"), key + "a"):
        assert refusal(guarded.send(wrong, "POST", "/compile", BODY)) == (401, "auth.invalid")


def test_a_secret_is_in_no_answer_and_in_no_log(guarded: Guarded) -> None:
    key = guarded.key("secretive")
    revoked = guarded.key("secretive")
    guarded.keyring.revoke(revoked.split("_")[1])
    answers = [guarded.send(each, "GET", "/unknown").text for each in (key, revoked, key[:-1])]
    for each in (key, revoked):
        secret = each.split("_")[2]
        assert all(secret[:20] not in text for text in (*answers, guarded.log()))


def test_a_big_body_without_a_credential_gets_its_answer(guarded: Guarded) -> None:
    body = b" " * (4 << 20)
    assert refusal(guarded.send(None, "POST", "/compile", body)) == (401, "auth.missing")


def test_stored_programs_need_the_scope_cache_read(guarded: Guarded) -> None:
    writer = guarded.key("scoped")
    compiled = guarded.send(writer, "POST", "/compile", BODY)
    compiler = guarded.key("scoped", Scope.COMPILE)
    answer = guarded.send(compiler, "POST", "/compile", BODY)
    assert refusal(answer) == (403, "auth.forbidden")
    assert answer.json()["details"]["scopes"] == ["cache:write", "compile"]
    assert answer.headers["www-authenticate"].endswith('error="insufficient_scope", scope="cache:write compile"')
    assert guarded.send(compiler, "POST", "/validate", encoded({"graph": graph()})).status_code == 200
    for path in (f"/artifacts/{artifacts(compiled)[0]}", f"/programs/{program(compiled)}"):
        assert guarded.send(compiler, "GET", path).status_code == 404
        assert guarded.send(guarded.key("scoped", Scope.CACHE_READ), "GET", path).status_code == 200


def test_a_reader_gets_hits_and_causes_no_compile(guarded: Guarded) -> None:
    writer, reader = guarded.key("readers"), guarded.key("readers", Scope.CACHE_READ)
    missed = guarded.send(reader, "POST", "/compile", BODY)
    assert refusal(missed) == (403, "auth.forbidden")
    guarded.send(writer, "POST", "/compile", BODY)
    same = guarded.send(reader, "POST", "/compile", BODY)
    renamed = guarded.send(reader, "POST", "/compile", encoded(compile_body(graph(name="other", symbol="k"))))
    assert [answer.json()["programs"][0]["cache"]["status"] for answer in (same, renamed)] == ["hit", "hit"]
    assert guarded.send(reader, "GET", f"/artifacts/{artifacts(same)[0]}").status_code == 200
    assert refusal(guarded.send(reader, "POST", "/validate", encoded({"graph": graph()}))) == (403, "auth.forbidden")


def test_a_reader_has_nothing_stored_and_cancels_nothing(guarded: Guarded) -> None:
    writer, reader = guarded.key("jobless"), guarded.key("jobless", Scope.CACHE_READ)
    asynchronous = {"Prefer": "respond-async"}

    def jobs() -> set[Path]:
        store = guarded.home / "store"
        return {path for path in at_rest(store) if store / "jobs" in path.parents}

    assert refusal(guarded.send(reader, "POST", "/compile", BODY, **asynchronous)) == (403, "auth.forbidden")
    accepted = guarded.send(writer, "POST", "/compile", BODY, **asynchronous)
    where = accepted.headers["Content-Location"]
    while guarded.send(writer, "GET", where).json()["state"] != "done":
        time.sleep(0.05)
    before = jobs()
    known = guarded.send(reader, "POST", "/compile", encoded(compile_body(graph(name="mine"))), **asynchronous)
    assert (known.status_code, known.json()["state"]) == (200, "done")
    assert known.json()["programs"][0]["cache"]["status"] == "hit"
    assert "Location" not in known.headers
    assert jobs() == before
    batch = encoded({"requests": [compile_body()]})
    assert refusal(guarded.send(reader, "POST", "/jobs:batch", batch)) == (403, "auth.forbidden")
    assert guarded.send(reader, "GET", where).status_code == 200
    assert refusal(guarded.send(reader, "DELETE", where)) == (403, "auth.forbidden")


def test_jobs_give_no_access_to_programs_of_others(guarded: Guarded) -> None:
    writer = guarded.key("jobs")
    made = guarded.send(writer, "POST", "/compile", BODY, Prefer="wait=60")
    where = made.headers["Content-Location"]
    blind = guarded.key("jobs", Scope.COMPILE, Scope.CACHE_WRITE)
    for method, path in (("GET", where), ("GET", f"{where}/events"), ("DELETE", where)):
        assert refusal(guarded.send(blind, method, path)) == (404, "request.not_found")
    own = guarded.send(blind, "POST", "/compile", BODY, Prefer="wait=60").headers["Content-Location"]
    assert guarded.send(blind, "GET", own).json()["state"] == "done"
    assert guarded.send(guarded.key("jobs", Scope.CACHE_READ), "GET", own).status_code == 200


def test_a_compile_without_cache_write_is_refused_before_it_costs_anything(guarded: Guarded) -> None:
    half = guarded.key("half", Scope.COMPILE, Scope.CACHE_READ)
    for _ in range(2):
        assert refusal(guarded.send(half, "POST", "/compile", BODY)) == (403, "auth.forbidden")


def test_a_writer_that_does_not_read_compiles_again_and_reads_what_it_made(guarded: Guarded) -> None:
    writer = guarded.key("blind", Scope.COMPILE, Scope.CACHE_WRITE)
    answers = [guarded.send(writer, "POST", "/compile", BODY) for _ in range(2)]
    for answer in answers:
        assert answer.json()["programs"][0]["cache"]["status"] == "miss"
        assert guarded.send(writer, "GET", f"/artifacts/{artifacts(answer)[0]}").status_code == 200
    other = guarded.key("blind", Scope.COMPILE, Scope.CACHE_WRITE)
    assert guarded.send(other, "GET", f"/artifacts/{artifacts(answers[0])[0]}").status_code == 404
    full = guarded.send(guarded.key("blind"), "POST", "/compile", BODY)
    assert full.json()["programs"][0]["cache"]["status"] == "hit"
    assert guarded.send(guarded.key("blind"), "GET", f"/artifacts/{artifacts(full)[0]}").status_code == 200


def test_admin_is_no_key_to_the_work_of_tenants(guarded: Guarded) -> None:
    admin, worker = guarded.key("operators", Scope.ADMIN), guarded.key("operators")
    assert refusal(guarded.send(admin, "POST", "/compile", BODY)) == (403, "auth.forbidden")
    assert refusal(guarded.send(admin, "GET", "/unknown")) == (404, "request.not_found")
    assert refusal(guarded.send(worker, "GET", "/unknown")) == (403, "auth.forbidden")


def test_answers_of_a_tenant_are_not_for_shared_caches_on_their_way(guarded: Guarded) -> None:
    key = guarded.key("private")
    answer = guarded.send(key, "POST", "/compile", BODY)
    artifact = guarded.send(key, "GET", f"/artifacts/{artifacts(answer)[0]}")
    assert artifact.headers["cache-control"] == "private, max-age=31536000, immutable"
