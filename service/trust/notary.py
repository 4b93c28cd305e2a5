"""Signs what was compiled here, and trusts only what a key of its keyring has signed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

import structlog
from pydantic import TypeAdapter, ValidationError

from service import clock
from service.action import Action
from service.observe.instruments import OF_A_FARM, count_corrupt, count_refused
from tensorkiln.errors import UntrustedArtifactError
from tensorkiln.trust import ActionRecord, RequestedAction, SignedRecord, signed_bytes, verify
from tensorkiln.trust.encoding import canonical_json
from tensorkiln.trust.verify import CLOCK_SKEW_S

from .keyring import Keyring

Sealed: TypeAlias = Literal["answer", "crash", "attempt", "member", "claim", "result"]
"""The kinds of sealed records. The last three are those of a farm."""

_log = structlog.get_logger()
# Reasons that depend on settings and keys: a service with others may trust the record.
_MATTERS_OF_SETTINGS = frozenset({"unknown_key", "expired_key", "isolation"})
_SEAL_DOMAIN = b"tensorkiln answer v1\0"
SEAL: Final = "seal"
_PLACES: Final[Mapping[Sealed, str]] = {"answer": "request"}
"""The field that binds a sealed record to its place, so that a copy elsewhere is invalid; by default its kind."""
_SIGNS_OF_LIFE: Final[frozenset[Sealed]] = frozenset({"member", "claim"})
"""Records that are valid for CLOCK_SKEW_S seconds: nobody can write an old heartbeat again."""
_MAX_REFUSED: Final = 1024
_SEAL_CHARACTERS: Final = 200
_KEY: Final = b',"signatures":'
"""Cannot occur inside a JSON string, where quotes are escaped."""
_SIGNATURES: Final = TypeAdapter(tuple[SignedRecord | None, ...])


class Notary:
    """Signs programs as `worker`, compiled at `isolation`, which is also the lowest level that is trusted."""

    def __init__(self, keyring: Keyring, worker: str, isolation: str) -> None:
        self._keyring = keyring
        self._worker = worker
        self.isolation = isolation
        self._refused: set[tuple[str, str]] = set()

    def sign(self, action: Action, program: str, artifacts: Collection[str], stages: Mapping[str, str]) -> SignedRecord:
        """Sign the record of one compile: the SHA-256 of its program, of its artifacts, and of its dumps by stage."""
        key = self._keyring.signer()
        record = ActionRecord(
            action=action.digest,
            request=_requested(action),
            program=program,
            artifacts=tuple(sorted(set(artifacts))),
            stages=dict(stages),
            build_id=action.build_id,
            isolation=self.isolation,
            worker=self._worker,
            key=key.kid,
            issued_at=int(clock.time()),
        )
        return SignedRecord(record=record, signature=key.sign(signed_bytes(record)))

    def believes(self, stored: str, action: str) -> SignedRecord | None:
        """Verify the stored record (JSON) of the action with this digest; None when it is not trusted."""
        found = self._verified(stored, action)
        if isinstance(found, SignedRecord):
            return found
        count_corrupt("program")
        reason = "malformed" if found is None else found.details["reason"]
        _log.error("a stored program is not trusted and is compiled again", digest=action, reason=reason)
        return None

    def believes_answer(self, answer: bytes) -> bool:
        """Whether every signed program of an answer (JSON) is trusted now."""
        try:
            for signed in signatures_of(answer):
                if signed is not None:
                    self._verify(signed, signed.record.action)
        except UntrustedArtifactError as error:
            _log.error("a stored answer is not trusted", reason=error.details["reason"])
            return False
        return True

    def doubt(self, stored: str, action: str) -> UntrustedArtifactError | None:
        """Why this service distrusts a stored record (JSON) that others may trust; None if all agree."""
        found = self._verified(stored, action)
        if isinstance(found, UntrustedArtifactError) and found.details["reason"] in _MATTERS_OF_SETTINGS:
            return found
        return None

    def _verified(self, stored: str, action: str) -> SignedRecord | UntrustedArtifactError | None:
        """A stored record (JSON), or why it is not trusted; None when it is malformed."""
        try:
            signed = SignedRecord.model_validate_json(stored)
            self._verify(signed, action)
        except ValidationError:
            return None
        except UntrustedArtifactError as error:
            return error
        return signed

    def _verify(self, signed: SignedRecord, action: str) -> None:
        keys = self._keyring.public()
        verify(signed, keys, action=action, now=clock.time(), minimum_isolation=self.isolation)

    def sealed(self, kind: Sealed, place: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """`content` (JSON) as a record that this service signs for this place, with the current time as `at`.

        UnavailableError when the key cannot be used.
        """
        stated = {**content, "at": clock.time()}
        key = self._keyring.signer()
        return {**stated, SEAL: {"key": key.kid, "signature": key.sign(_bound(kind, place, stated))}}

    def opened(
        self, kind: Sealed, place: str, record: Mapping[str, Any] | None, *, at_any_time: bool = False
    ) -> dict[str, Any] | None:
        """The content of a sealed record; None unless it was sealed for this place by a key that is still valid.

        A heartbeat must be recent, except with `at_any_time`. A refused record is counted and logged, one of a farm,
        which is read again and again, only once.
        """
        if record is None:
            return None
        content = self.unsealed(kind, place, record, None if at_any_time else clock.time())
        if not isinstance(content, str):
            return content
        met = place, repr(record.get(SEAL))[:_SEAL_CHARACTERS]
        if kind not in OF_A_FARM or met not in self._refused:
            if len(self._refused) >= _MAX_REFUSED:
                self._refused.clear()
            self._refused.add(met)
            count_refused(kind)
            _log.error("a sealed record is not verified", kind=kind, place=place, reason=content)
        return None

    def unsealed(self, kind: Sealed, place: str, record: Mapping[str, Any], now: float | None) -> dict[str, Any] | str:
        """The content of a sealed record, or why it is not valid; a heartbeat has to be recent at the time `now`."""
        content = {name: value for name, value in record.items() if name != SEAL}
        if SEAL not in record:
            return "unsigned"
        try:
            key, signature = self._keyring.public().get(record[SEAL]["key"]), str(record[SEAL]["signature"])
            is_signed = key is not None and key.has_signed(_bound(kind, place, content), signature)
        except (KeyError, TypeError, ValueError, RecursionError):  # no sealed content has infinities or is that deep
            is_signed = False
        if not is_signed:
            return "no valid signature by a key that is trusted"
        is_old = now is not None and kind in _SIGNS_OF_LIFE and abs(now - content["at"]) > CLOCK_SKEW_S
        return "too old, or clocks disagree" if is_old else content

    def is_valid(self, kid: str) -> bool:
        """Whether signatures by this key are trusted now."""
        return kid in self._keyring.public()


def _bound(kind: Sealed, place: str, content: Mapping[str, Any]) -> bytes:
    """What is signed. What the content itself says about its place does not count."""
    return _SEAL_DOMAIN + canonical_json({**content, _PLACES.get(kind, kind): place})


def matches(record: ActionRecord, action: Action) -> bool:
    """Whether every component that the record names equals that of `action`."""
    return record.request == _requested(action) and record.build_id == action.build_id


def _requested(action: Action) -> RequestedAction:
    public = {name: value for name, value in action.components.items() if name not in ("build_id", "salt")}
    return RequestedAction.model_validate(public)


def with_signatures(answer: bytes, signatures: Iterable[str]) -> bytes:
    """An answer to a compile request, as JSON, with the signed record (JSON) of each program; empty means unsigned."""
    listed = b",".join(signature.encode() or b"null" for signature in signatures)
    return b"%b%b[%b]}" % (answer.removesuffix(b"}"), _KEY, listed)


def signatures_of(answer: bytes) -> tuple[SignedRecord | None, ...]:
    """The signatures that `with_signatures` added to an answer, whose programs are not parsed; empty without any."""
    try:
        return _SIGNATURES.validate_json(answer.rpartition(_KEY)[2].removesuffix(b"}"))
    except ValidationError:
        return ()
