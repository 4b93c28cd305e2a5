"""Vouches for what was compiled here, and believes nothing in the store that it, or a key beside its own, did not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, TypeAlias

import structlog
from pydantic import ValidationError

from service import clock
from service.action import Action
from service.observe.instruments import count_corrupt
from tensorkiln.errors import UntrustedArtifactError
from tensorkiln.trust import ActionRecord, RequestedAction, SignedRecord, signed_bytes, verify
from tensorkiln.trust.encoding import canonical_json

from .attach import signatures_of
from .keyring import Keyring

Sealed: TypeAlias = Literal["answer", "crash", "attempt"]

_log = structlog.get_logger()
# With the same settings and keys, whoever signed it would have been believed.
_MATTERS_OF_SETTINGS = frozenset({"unknown_key", "expired_key", "isolation"})
_SEAL_DOMAIN = b"tensorkiln answer v1\0"
SEAL: Final = "seal"
_PLACES: Final[Mapping[Sealed, str]] = {"answer": "request", "crash": "crash", "attempt": "attempt"}
"""What is sealed with a record of each kind: where it is, so that it is good nowhere else."""


class Notary:
    """Signs with the keys of `keyring`, in the name of `worker`, what was compiled with the level `isolation`.

    `isolation` is also the least that is believed of the store, and may be set once it is known.
    """

    def __init__(self, keyring: Keyring, worker: str, isolation: str) -> None:
        self._keyring = keyring
        self._worker = worker
        self.isolation = isolation

    def sign(self, action: Action, program: str, artifacts: Collection[str], stages: Mapping[str, str]) -> SignedRecord:
        """The record of one compile: the SHA-256 of its program, of its artifacts, and of its dumps by stage."""
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
        """The stored record (JSON) of the action with this digest; None when it is not to be believed."""
        try:
            signed = SignedRecord.model_validate_json(stored)
            self._verify(signed, action)
        except (ValidationError, UntrustedArtifactError) as error:
            count_corrupt("program")
            reason = error.details["reason"] if isinstance(error, UntrustedArtifactError) else "malformed"
            _log.error("a stored program is not trusted and is compiled again", digest=action, reason=reason)
            return None
        return signed

    def believes_answer(self, answer: bytes) -> bool:
        """Whether every program of an answer (JSON) that is signed would be believed now, were it asked for."""
        try:
            for signed in signatures_of(answer):
                if signed is not None:
                    self._verify(signed, signed.record.action)
        except UntrustedArtifactError as error:
            _log.error("a stored answer is not trusted", reason=error.details["reason"])
            return False
        return True

    def doubt(self, stored: str, action: str) -> UntrustedArtifactError | None:
        """What is wrong with a stored record (JSON) that another service or worker may believe nevertheless.

        None when it is believed, or is one that nobody would believe.
        """
        try:
            signed = SignedRecord.model_validate_json(stored)
            self._verify(signed, action)
        except UntrustedArtifactError as error:
            return error if error.details["reason"] in _MATTERS_OF_SETTINGS else None
        except ValidationError:
            return None
        return None

    def _verify(self, signed: SignedRecord, action: str) -> None:
        keys = self._keyring.public()
        verify(signed, keys, action=action, now=clock.time(), minimum_isolation=self.isolation)

    def seal(self, content: Mapping[str, Any]) -> dict[str, str]:
        """This service's word that it wrote `content` (JSON) itself."""
        key = self._keyring.signer()
        return {"key": key.kid, "signature": key.sign(_SEAL_DOMAIN + canonical_json(content))}

    def sealed(self, kind: Sealed, place: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """`content` (JSON) as a record for this place, with this service's word."""
        return {**content, SEAL: self.seal({**content, _PLACES[kind]: place})}

    def opened(self, kind: Sealed, place: str, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """The content of such a record; None when it is not that of this place, by a key that is valid still."""
        content = {name: value for name, value in record.items() if name != SEAL}
        # What the record itself says about its place does not count.
        if self.vouches({**content, _PLACES[kind]: place}, record.get(SEAL)):
            return content
        count_corrupt(kind)
        _log.error("the signature of a sealed record is invalid; it is made again", kind=kind)
        return None

    def vouches(self, content: Mapping[str, Any], seal: Any) -> bool:
        """Whether `seal` is that of `content`, by a key that is valid still. Both may be any JSON."""
        try:
            key, signature = self._keyring.public().get(seal["key"]), str(seal["signature"])
            return key is not None and key.has_signed(_SEAL_DOMAIN + canonical_json(content), signature)
        except (KeyError, TypeError, ValueError, RecursionError):  # nobody seals what is not finite, or that deep
            return False

    def is_valid(self, kid: str) -> bool:
        """Whether what this key signed is believed now."""
        return kid in self._keyring.public()


def matches(record: ActionRecord, action: Action) -> bool:
    """Whether the record is that of `action`, in every component that it names."""
    requested = RequestedAction.model_validate(_public_components(action))
    return record.request == requested and record.build_id == action.build_id


def _public_components(action: Action) -> dict[str, Any]:
    return {name: value for name, value in action.components.items() if name not in ("build_id", "salt")}
