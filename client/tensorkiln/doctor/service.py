"""Checks of the service: reachability, readiness, authentication, and trust in its keys."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from ..errors import RequestError, UnavailableError, UntrustedArtifactError
from ..settings import Settings
from ..spec.abi import ABI_VERSION
from ..trust.isolation import is_at_least
from ..trust.keys import KeySet, PublicKey
from ..trust.policy import Policy
from ..trust.service_keys import ServiceKeys
from .finding import Finding, fail, ok, warn
from .line import Answer, Line, opened, told

_NEEDED: Final = frozenset({"compile", "cache:read", "cache:write"})
_SKEW_WARN_S: Final = 5.0
_SKEW_FAIL_S: Final = 60.0
"""The service's tolerance for a token's times, in seconds."""
_DIGITS: Final = 12


def look(settings: Settings, policy: Policy) -> Iterator[Finding]:
    """Check the service of a client with these settings; an embedded service is started."""
    if policy.offline:
        yield ok("service", "not asked: KILN_OFFLINE is set")
        return
    where = settings.url or "embedded"
    try:
        with opened(settings) as line:
            yield from _asked(line, where, settings, policy)
    except RequestError as error:
        yield fail("environment", error.message, "correct or unset the variable; NO_PROXY lists hosts without a proxy")
    except UnavailableError as error:
        advice = (
            f"start it, or correct KILN_URL, which is {settings.url}"
            if settings.url is not None
            else "read its last lines above, or name a running service in KILN_URL"
        )
        yield fail("service", f"{where}: {error.message}", advice)


def _asked(line: Line, where: str, settings: Settings, policy: Policy) -> Iterator[Finding]:
    described = line.get("/capabilities")
    if described.status != 200 or "build_id" not in described.body:
        yield fail("service", f"{where}: {described.told}", "this is not a tensorkiln service; correct KILN_URL")
        return
    yield _version(where, described.body)
    yield _isolation(described.body, policy)
    yield _ready(line.get("/readyz"))
    yield from _clock(described)
    caller = line.get("/whoami")
    yield _caller(caller, settings)
    keys = line.get("/keys")
    if keys.status == 200:
        yield _keys(keys.content, settings, policy)


def _version(where: str, described: Mapping[str, Any]) -> Finding:
    abi = described.get("abi")
    if abi != ABI_VERSION:
        advice = "install the same version of tensorkiln as the service"
        return fail(
            "service", f"{where}: its programs have the ABI {told(abi)}, and this SDK runs {ABI_VERSION}", advice
        )
    return ok("service", f"{where}: build {told(described['build_id'])[:_DIGITS]}")


def _isolation(described: Mapping[str, Any], policy: Policy) -> Finding:
    stated: Any = described.get("isolation")
    level = told(stated.get("level") if isinstance(stated, Mapping) else None)
    if not is_at_least(level, policy.minimum_isolation):
        found = f"programs are compiled with the level {level}, and KILN_MIN_ISOLATION is {policy.minimum_isolation}"
        return fail("isolation", found, "lower KILN_MIN_ISOLATION, or use a service with stronger isolation")
    return ok("isolation", level)


def _ready(answer: Answer) -> Finding:
    if answer.status == 200:
        return ok("readiness", "it compiles, and its store works")
    details: Any = answer.body.get("details")
    failed: Any = details.get("failed") if isinstance(details, Mapping) else None
    if not isinstance(failed, Mapping):
        return fail("readiness", answer.told, "wait until it has started, or contact its operator")
    found = "; ".join(f"{name}: {told(reason)}" for name, reason in failed.items())
    return fail("readiness", found, "contact its operator; docs/observability.md explains the checks")


def _clock(answer: Answer) -> Iterator[Finding]:
    if answer.ahead_s is None:
        return
    off = abs(answer.ahead_s)
    found = f"{off:.0f} s {'behind' if answer.ahead_s > 0 else 'ahead of'} the service's"
    advice = "set the clock of this machine or of the service: the validity of keys and tokens depends on it"
    if off > _SKEW_FAIL_S:
        yield fail("clock", found, advice)
    elif off > _SKEW_WARN_S:
        yield warn("clock", found, advice)
    else:
        yield ok("clock", f"agrees with the service's to within {max(off, 1):.0f} s")


def _caller(answer: Answer, settings: Settings) -> Finding:
    if answer.status in (401, 403):
        advice = (
            "set KILN_API_KEY to a key that the operator gave you"
            if settings.api_key is None
            else ("ask the operator for another key; `python -m tensorkiln_server identity make` makes one")
        )
        return fail("credential", answer.told, advice)
    scopes: Any = answer.body.get("scopes")
    if answer.status != 200 or not isinstance(scopes, list):
        return warn("credential", answer.told, "the service is an older version, which does not identify its callers")
    if answer.body.get("is_local"):
        if settings.api_key is None:
            return ok("credential", "the service requires none")
        advice = (
            "unset KILN_API_KEY; or make a key with `python -m tensorkiln_server identity make`, "
            "after which the service requires one"
        )
        return warn("credential", "the service requires no key, and ignores the one that is sent", advice)
    has = [told(scope) for scope in scopes]
    named = f"{told(answer.body.get('name'))} of {told(answer.body.get('tenant'))}, with {', '.join(has)}"
    lacking = sorted(_NEEDED - frozenset(has))
    if lacking:
        advice = f"to compile new programs, ask the operator for a key with {', '.join(lacking)}"
        return warn("credential", named, advice)
    return ok("credential", named)


def _keys(content: bytes, settings: Settings, policy: Policy) -> Finding:
    part = "signing keys"
    try:
        offered = KeySet.model_validate_json(content).keys
    except ValidationError:
        return fail(part, "the service returns no usable keys", "use the same version of tensorkiln as the service")
    now = time.time()
    signing = next((key for key in offered if key.nbf <= now < key.exp), None)
    if signing is None:
        return fail(part, "the service has no key that is valid now", "compare the clocks, or contact its operator")
    kept = ServiceKeys(settings.url or "embedded", None, policy.config, pins=policy.pins)
    try:
        return _trusted(signing, offered, kept, settings, policy)
    except UntrustedArtifactError as error:
        return fail(part, error.message, "remove the file, once you know why it is damaged")


def _trusted(
    signing: PublicKey, offered: tuple[PublicKey, ...], kept: ServiceKeys, settings: Settings, policy: Policy
) -> Finding:
    part, name = "signing keys", signing.kid[:_DIGITS]
    known = kept.known()
    if policy.pins:
        if signing.kid in known:
            return ok(part, f"{name} is one of KILN_TRUSTED_KEYS")
        advice = "add the service's key to KILN_TRUSTED_KEYS, once you know that it is the service's"
        return fail(part, f"the signing key {name} is not in KILN_TRUSTED_KEYS", advice)
    if settings.url is None:
        return ok(part, f"{name}; an embedded service is trusted")
    if not known:
        return ok(part, f"{name} will be trusted on first use: no key is known yet")
    if signing.kid in kept.known_after(offered):
        return ok(part, f"{name} is known from an earlier use, or endorsed by one that is")
    advice = f"if the service was set up anew, delete {kept.path}; if not, another server answers at this address"
    return fail(part, f"the signing key {name} was not known at first use and is not endorsed", advice)
