"""Signs what was compiled here, and trusts only what a key of its keyring has signed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

import structlog
from pydantic import TypeAdapter, ValidationError

from service import clock
from service.action import Action
from service.observe.instruments import count_corrupt
from tensorkiln.errors import UntrustedArtifactError
from tensorkiln.trust import ActionRecord, RequestedAction, SignedRecord, signed_bytes, verify
from tensorkiln.trust.encoding import canonical_json

from .keyring import Keyring

Sealed: TypeAlias = Literal["answer", "crash", "attempt"]

_log = structlog.get_logger()
# Reasons that depend on settings and keys: a service with others may trust the record.
_MATTERS_OF_SETTINGS = frozenset({"unknown_key", "expired_key", "isolation"})
_SEAL_DOMAIN = b"tensorkiln answer v1\0"
SEAL: Final = "seal"
_PLACES: Final[Mapping[Sealed, str]] = {"answer": "request", "crash": "crash", "attempt": "attempt"}
"""The field that binds a sealed record of each kind to its place, so that a copy elsewhere is invalid."""
_KEY: Final = b',"signatures":'
"""Cannot occur inside a JSON string, where quotes are escaped."""
_SIGNATURES: Final = TypeAdapter(tuple[SignedRecord | None, ...])


class Notary:
    """Signs programs as `worker`, compiled at `isolation`, which is also the lowest level that is trusted."""

    def __init__(self, keyring: Keyring, worker: str, isolation: str) -> None:
        self._keyring = keyring
        self._worker = worker
        self.isolation = isolation

    def sign(self, action: Action, program: str, artifacts: Collection[str], stages: Mapping[str, str]) -> SignedRecord:
        """Sign the record of one compile: the SHA-256 of its program, of its artifacts, and of its dumps by stage."""
        key = self._keyring.signer()
        record = ActionRecord(
            action=action.digest,
            request=RequestedAction.model_validate(_public_components(action)),
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

    def seal(self, content: Mapping[str, Any]) -> dict[str, str]:
        """Sign `content` (JSON) as written by this service."""
        key = self._keyring.signer()
        return {"key": key.kid, "signature": key.sign(_SEAL_DOMAIN + canonical_json(content))}

    def sealed(self, kind: Sealed, place: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """`content` (JSON) as a sealed record for this place."""
        return {**content, SEAL: self.seal({**content, _PLACES[kind]: place})}

    def opened(self, kind: Sealed, place: str, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """The content of a sealed record; None unless it was sealed for this place by a key that is still valid."""
        content = {name: value for name, value in record.items() if name != SEAL}
        # What the record itself says about its place does not count.
        if self.vouches({**content, _PLACES[kind]: place}, record.get(SEAL)):
            return content
        count_corrupt(kind)
        _log.error("a sealed record has no valid signature; it is made again", kind=kind)
        return None

    def vouches(self, content: Mapping[str, Any], seal: Any) -> bool:
        """Whether `seal` is a signature of `content` by a key that is still valid. Both may be any JSON."""
        try:
            key, signature = self._keyring.public().get(seal["key"]), str(seal["signature"])
            return key is not None and key.has_signed(_SEAL_DOMAIN + canonical_json(content), signature)
        except (KeyError, TypeError, ValueError, RecursionError):  # no sealed content has infinities or is that deep
            return False

    def is_valid(self, kid: str) -> bool:
        """Whether signatures by this key are trusted now."""
        return kid in self._keyring.public()


def matches(record: ActionRecord, action: Action) -> bool:
    """Whether every component that the record names equals that of `action`."""
    requested = RequestedAction.model_validate(_public_components(action))
    return record.request == requested and record.build_id == action.build_id


def _public_components(action: Action) -> dict[str, Any]:
    return {name: value for name, value in action.components.items() if name not in ("build_id", "salt")}


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
