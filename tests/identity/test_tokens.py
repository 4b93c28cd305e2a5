"""Tokens of a real issuer on the loopback, at a real service."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey
from pydantic import ValidationError

from service.identity.caller import Scope
from service.identity.register import Issuer, TenantRecord
from service.identity.tokens import FRESH_S, MAX_LEFT_S, REFRESH_S, STALE_S, Jwks, Tokens
from tensorkiln.errors import ExpiredCredentialError, ForbiddenError, InvalidCredentialError, UnavailableError
from tests.clocks import HandClock, going_by
from tests.identity.guarded import Guarded, artifacts, program, refusal
from tests.identity.issuer import AUDIENCE, Counted, TestIssuer
from tests.service.bodies import compile_body, encoded, graph
from tests.settled import settled
from tests.snippets import ROOT

# One process runs all of it, and starts one service.
pytestmark = pytest.mark.xdist_group("tokens")
WORKER = ["compile", "cache:read", "cache:write"]
MAIN = {"repository": "acme/net", "repository_owner": "acme", "event_name": "push", "ref": "refs/heads/main"}
PULL = {**MAIN, "event_name": "pull_request", "ref": "refs/pull/7/merge"}
BODY = encoded(compile_body())
# A modulus of 1024 bits.
SHORT = base64.urlsafe_b64encode(b"\xc5" * 128).rstrip(b"=").decode()


def settings_of(running: TestIssuer, **changes: Any) -> dict[str, Any]:
    return {
        "name": "github",
        "issuer": running.url,
        "audience": AUDIENCE,
        "rules": [
            {"claims": {"repository_owner": ["acme", "other"]}, "tenant_claim": "repository_owner", "scopes": WORKER},
            {"claims": {"repository": "third/*"}, "tenant": "third", "scopes": ["cache:read"]},
        ],
        **changes,
    }


@pytest.fixture(scope="module")
def issuer() -> Iterator[TestIssuer]:
    with TestIssuer() as running:
        yield running


@pytest.fixture(scope="module")
def service(issuer: TestIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    oidc = json.dumps([settings_of(issuer)])
    with Guarded(tmp_path_factory.mktemp("tokens"), oidc=oidc) as running:
        yield running


@pytest.fixture
def hand() -> Iterator[HandClock]:
    with going_by(clock := HandClock(0.0)):
        yield clock


def tokens_of(issuer: TestIssuer, **changes: Any) -> Tokens:
    return Tokens([Issuer.model_validate(settings_of(issuer, **changes))], lambda _: TenantRecord())


def test_a_token_of_a_branch_compiles_and_one_of_a_pull_request_reads(service: Guarded, issuer: TestIssuer) -> None:
    branch, pull = issuer.token(**MAIN), issuer.token(**PULL)
    assert refusal(service.send(pull, "POST", "/compile", BODY)) == (403, "auth.forbidden")
    made = service.send(branch, "POST", "/compile", BODY)
    assert program(made)
    read = service.send(pull, "POST", "/compile", BODY)
    assert read.json()["programs"][0]["cache"]["status"] == "hit"
    assert service.send(pull, "GET", f"/artifacts/{artifacts(read)[0]}").status_code == 200
    unknown = encoded(compile_body(graph(rows=11)))
    assert refusal(service.send(pull, "POST", "/compile", unknown)) == (403, "auth.forbidden")


def test_the_claim_names_the_tenant(service: Guarded, issuer: TestIssuer) -> None:
    mine, theirs = issuer.token(**MAIN), issuer.token(**{**MAIN, "repository_owner": "other"})
    body = encoded(compile_body(graph(rows=12)))
    assert program(service.send(mine, "POST", "/compile", body)) != program(
        service.send(theirs, "POST", "/compile", body)
    )
    key = service.key("github/acme")
    answer = service.send(key, "POST", "/compile", body)
    assert answer.json()["programs"][0]["cache"]["status"] == "hit"


def test_a_token_that_no_rule_knows_is_forbidden(service: Guarded, issuer: TestIssuer) -> None:
    stranger = issuer.token(**{**MAIN, "repository_owner": "stranger"})
    assert refusal(service.send(stranger, "GET", "/openapi.json")) == (403, "auth.forbidden")


def test_an_expired_token_is_told_so(service: Guarded, issuer: TestIssuer) -> None:
    now = int(time.time())
    within_the_leeway = issuer.token(**MAIN, exp=now - 30)
    assert service.send(within_the_leeway, "GET", "/openapi.json").status_code == 200
    expired = service.send(issuer.token(**MAIN, exp=now - 90), "GET", "/openapi.json")
    assert refusal(expired) == (401, "auth.expired")


@pytest.mark.parametrize("stated", [{}, {"iat": 1}, {"iat": None}])
def test_a_token_that_lasts_too_long_is_refused_whenever_it_was_issued(
    service: Guarded, issuer: TestIssuer, stated: dict[str, Any]
) -> None:
    now = int(time.time())
    longest = issuer.token(**MAIN, exp=now + MAX_LEFT_S)
    assert service.send(longest, "GET", "/openapi.json").status_code == 200
    for end in (now + MAX_LEFT_S + 90, now + 10 * 365 * 86_400, 10**400):
        claims: dict[str, Any] = {**MAIN, **stated, "exp": end}
        refused = service.send(issuer.token(**claims), "GET", "/openapi.json")
        assert refusal(refused) == (401, "auth.invalid")
        assert "more than 24 h" in refused.json()["detail"]


def test_the_documents_state_how_long_a_token_may_last() -> None:
    page = (ROOT / "docs" / "identity.md").read_text()
    assert f"expires more than {MAX_LEFT_S // 3600} h from now" in " ".join(page.split())


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": None},
        {"iss": None},
        {"iss": "https://evil.example"},
        {"exp": None},
        {"exp": "tomorrow"},
        {"sub": None},
        {"nbf": 2**33},
        {"kid": "unknown"},
    ],
)
def test_a_token_for_somebody_else_is_refused(service: Guarded, issuer: TestIssuer, claims: dict[str, Any]) -> None:
    kid = claims.get("kid", "rsa-1")
    more = {name: value for name, value in claims.items() if name != "kid"}
    token = issuer.token(kid=kid, key=issuer.keys["rsa-1"], **{**MAIN, **more})
    assert refusal(service.send(token, "GET", "/openapi.json")) == (401, "auth.invalid")


@pytest.mark.parametrize("subject", ["a\nb", "a\x7f", "", "a" * 2049, 7])
def test_a_subject_that_is_no_name_is_refused(service: Guarded, issuer: TestIssuer, subject: Any) -> None:
    refused = service.send(issuer.token(**{**MAIN, "sub": subject}), "POST", "/compile", b"{}")
    assert refusal(refused) == (401, "auth.invalid")


def test_a_subject_that_cannot_be_written_is_refused(service: Guarded, issuer: TestIssuer) -> None:
    claims = {**MAIN, "iss": issuer.url, "aud": AUDIENCE, "sub": "a\ud800", "exp": int(time.time()) + 300}
    header = {"alg": "RS256", "kid": "rsa-1"}
    token = jws.serialize_compact(header, json.dumps(claims), issuer.keys["rsa-1"])
    assert refusal(service.send(token, "POST", "/compile", b"{}")) == (401, "auth.invalid")


def test_a_subject_may_be_long_and_in_any_script(service: Guarded, issuer: TestIssuer) -> None:
    for subject in ("a" * 2048, "\u00e9 \u4e2d \U0001f600"):
        answer = service.send(issuer.token(**{**MAIN, "sub": subject}), "GET", "/whoami")
        assert (answer.status_code, answer.json()["name"].endswith(f":{subject}")) == (200, True)


def test_a_token_that_others_signed_is_refused(service: Guarded, issuer: TestIssuer) -> None:
    forged = issuer.token(key=RSAKey.generate_key(2048), **MAIN)
    weak = issuer.token(alg="RS512", **MAIN)
    swapped = issuer.token(kid="ec-1", key=issuer.keys["rsa-1"], **MAIN)
    for token in (forged, confused(issuer), weak, swapped, unsigned(issuer), tampered(issuer)):
        assert refusal(service.send(token, "GET", "/openapi.json")) == (401, "auth.invalid")
    assert service.send(issuer.token(kid="ec-1", alg="ES256", **MAIN), "GET", "/openapi.json").status_code == 200


def unsigned(issuer: TestIssuer) -> str:
    _, claims, _ = issuer.token(**MAIN).split(".")
    return f"{part({'alg': 'none', 'kid': 'rsa-1'})}.{claims}."


def confused(issuer: TestIssuer) -> str:
    """Signed with the public key, as if that were a secret."""
    _, claims, _ = issuer.token(**MAIN).split(".")
    signed = f"{part({'alg': 'HS256', 'kid': 'rsa-1'})}.{claims}"
    signature = hmac.digest(issuer.keys["rsa-1"].as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def tampered(issuer: TestIssuer) -> str:
    header, _, signature = issuer.token(**MAIN).split(".")
    now = int(time.time())
    claims = {**MAIN, "iss": issuer.url, "aud": AUDIENCE, "sub": "x", "exp": now + 300, "repository_owner": "other"}
    return f"{header}.{part(claims)}.{signature}"


def part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "token", ["a.b.c", "..", "e30.e30.", "W10.W10.x", f"{'A' * 20_000}.e30.x", f"{part({'alg': 'RS256'})}.e30.x"]
)
def test_malformed_tokens_are_refused_without_a_request_to_the_issuer(issuer: TestIssuer, token: str) -> None:
    before = issuer.asked
    with pytest.raises(InvalidCredentialError):
        asyncio.run(tokens_of(issuer).caller(token))
    assert issuer.asked == before


def test_a_new_key_is_fetched_and_unknown_ones_do_not_make_the_service_ask_again_and_again(hand: HandClock) -> None:
    async def run(issuer: TestIssuer) -> None:
        jwks = Counted(Issuer.model_validate(settings_of(issuer)))
        assert await jwks.key("rsa-1") is not None
        issuer.add("rsa-2", RSAKey.generate_key(2048))
        hand.at += REFRESH_S
        assert await jwks.key("rsa-2") is not None
        assert (jwks.fetches, issuer.asked) == (2, 2)
        found = await asyncio.gather(*(jwks.key(f"unknown-{number}") for number in range(100)))
        assert found == [None] * 100
        assert jwks.fetches == 2
        hand.at += REFRESH_S
        await asyncio.gather(*(jwks.key(f"unknown-{number}") for number in range(100)))
        assert jwks.fetches == 3

    with TestIssuer() as issuer:
        asyncio.run(run(issuer))


def test_keys_outlive_a_short_silence_of_their_issuer_and_not_a_long_one(hand: HandClock) -> None:
    async def run(issuer: TestIssuer) -> None:
        jwks = Counted(Issuer.model_validate(settings_of(issuer)))
        assert await jwks.key("rsa-1") is not None
        issuer.fails = True
        hand.at += FRESH_S + 1
        assert await jwks.key("rsa-1") is not None
        hand.at += STALE_S
        with pytest.raises(UnavailableError, match="keys"):
            await jwks.key("rsa-1")
        issuer.fails = False
        hand.at += REFRESH_S
        assert await jwks.key("rsa-1") is not None

    with TestIssuer() as issuer:
        asyncio.run(run(issuer))


def test_an_issuer_that_withdraws_a_key_is_believed_when_the_keys_are_fetched_again(hand: HandClock) -> None:
    async def run(issuer: TestIssuer) -> None:
        jwks = Counted(Issuer.model_validate(settings_of(issuer)))
        assert await jwks.key("rsa-1") is not None
        del issuer.keys["rsa-1"]
        hand.at += FRESH_S + 1
        assert await jwks.key("rsa-1") is None

    with TestIssuer() as issuer:
        asyncio.run(run(issuer))


def test_an_issuer_that_hangs_keeps_nobody_waiting_whose_key_is_known(
    monkeypatch: pytest.MonkeyPatch, hand: HandClock
) -> None:
    monkeypatch.setattr("service.identity.tokens.PATIENCE_S", 0.01)

    async def run(issuer: TestIssuer) -> None:
        jwks = Counted(Issuer.model_validate(settings_of(issuer)))
        assert await jwks.key("rsa-1") is not None
        issuer.answers.clear()
        hand.at += FRESH_S + 1
        assert None not in await asyncio.gather(*(jwks.key("rsa-1") for _ in range(50)))
        unknown = asyncio.create_task(jwks.key("unknown"))
        assert await jwks.key("rsa-1") is not None
        assert jwks.fetches == 2
        assert not unknown.done()
        del issuer.keys["rsa-1"]
        issuer.answers.set()
        # Whoever waits for what is under way, and whoever comes then, has what the issuer says now.
        assert await unknown is None
        assert await jwks.key("rsa-1") is None
        assert jwks.fetches == 2

    with TestIssuer() as issuer:
        asyncio.run(run(issuer))


def test_an_issuer_that_never_ends_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.identity.tokens._FETCH_S", 0.05)

    async def run(silent: TestIssuer) -> None:
        silent.answers.clear()
        with pytest.raises(UnavailableError, match="cannot be fetched"):
            await Jwks(Issuer.model_validate(settings_of(silent))).key("rsa-1")

    with TestIssuer() as silent:
        asyncio.run(run(silent))


def test_a_cancelled_request_leaves_the_fetch_of_keys_to_others() -> None:
    async def run(issuer: TestIssuer) -> None:
        jwks = Counted(Issuer.model_validate(settings_of(issuer)))
        issuer.answers.clear()
        first, second = (asyncio.create_task(jwks.key("rsa-1")) for _ in range(2))
        await settled()
        first.cancel()
        await asyncio.wait({first})
        issuer.answers.set()
        assert await second is not None
        assert jwks.fetches == 1

    with TestIssuer() as issuer:
        asyncio.run(run(issuer))


def test_keys_that_verify_nothing_are_passed_over() -> None:
    curve = ECKey.generate_key("P-256").as_dict(private=False)

    async def run(issuer: TestIssuer) -> None:
        issuer.more = [
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
            {"kty": "RSA", "kid": "broken", "n": "AQAB"},
            {"kty": "RSA", "kid": "short", "n": SHORT, "e": "AQAB"},
            {**curve, "kid": "encrypts", "use": "enc"},
            {"kid": "nothing"},
            {**curve, "kid": "unheard-of", "crv": "P-9000"},
            {**curve, "kid": "no-word", "crv": ["P-256"]},
            {"kty": "OKP", "kid": "young", "crv": "ML-DSA-44", "x": "AQAB"},
            {**curve, "kid": ["many"], "kty": ["EC"]},
        ]
        jwks = Counted(Issuer.model_validate(settings_of(issuer)))
        assert await jwks.key("rsa-1") is not None
        names = [entry["kid"] for entry in issuer.more if isinstance(entry["kid"], str)]
        assert [await jwks.key(kid) for kid in names] == [None] * 8

    with TestIssuer() as issuer:
        asyncio.run(run(issuer))


def test_an_issuer_that_never_answered_makes_the_service_unavailable_and_not_the_token_invalid() -> None:
    with TestIssuer() as issuer:
        issuer.fails = True
        with pytest.raises(UnavailableError):
            asyncio.run(tokens_of(issuer).caller(issuer.token(**MAIN)))


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        (MAIN, set(WORKER)),
        (PULL, {"cache:read"}),
        ({**MAIN, "event_name": "pull_request_target"}, {"cache:read"}),
        ({**MAIN, "event_name": "workflow_run"}, {"cache:read"}),
        ({**MAIN, "event_name": "issue_comment"}, {"cache:read"}),
        ({**MAIN, "ref": "refs/pull/9/head"}, {"cache:read"}),
        ({**MAIN, "event_name": "schedule"}, set(WORKER)),
        ({"repository": "third/net"}, {"cache:read"}),
        ({"repository": "third/net", "event_name": "pull_request"}, {"cache:read"}),
    ],
)
def test_claims_are_worth_what_the_rules_say(issuer: TestIssuer, claims: dict[str, str], scopes: set[str]) -> None:
    caller = asyncio.run(tokens_of(issuer).caller(issuer.token(**claims)))
    assert caller.scopes == {Scope(name) for name in scopes}
    assert caller.name == "github:repo:acme/net"


def test_the_errors_of_tokens_have_their_classes(issuer: TestIssuer) -> None:
    tokens = tokens_of(issuer)
    with pytest.raises(ExpiredCredentialError):
        asyncio.run(tokens.caller(issuer.token(**MAIN, exp=1)))
    with pytest.raises(ForbiddenError, match="rule"):
        asyncio.run(tokens.caller(issuer.token()))
    odd = tokens_of(issuer, rules=[{"claims": {"sub": "*"}, "tenant_claim": "odd", "scopes": ["compile"]}])
    for value in (None, 7, "", "no spaces", ["acme"]):
        with pytest.raises(ForbiddenError, match="tenant"):
            asyncio.run(odd.caller(issuer.token(odd=value)))


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithms": ["HS256"]},
        {"algorithms": ["none"]},
        {"algorithms": []},
        {"issuer": "http://tokens.example"},
        {"jwks_url": "http://tokens.example/jwks"},
        {"jwks_url": "file:///etc/passwd"},
        {"rules": []},
        {"rules": [{"scopes": ["compile"]}]},
        {"rules": [{"tenant": "a", "tenant_claim": "b", "claims": {"c": "d"}, "scopes": ["compile"]}]},
        {"rules": [{"tenant_claim": "b", "scopes": ["compile"]}]},
        {"rules": [{"tenant": "a", "scopes": ["everything"]}]},
        {"audience": ""},
    ],
)
def test_settings_that_would_let_strangers_in_are_refused(issuer: TestIssuer, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Issuer.model_validate(settings_of(issuer, **changes))
