"""Statements of the workers of a farm: signed with their key, and bound to their subject.

An attacker who can write to the store, without a worker's key, cannot forge a valid statement. Neither can it reuse a
worker's statement about another subject, nor an old heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import structlog

from service import clock
from service.observe.instruments import FARM_REFUSED
from service.trust.notary import Notary
from tensorkiln.compiler_build import build
from tensorkiln.trust.verify import CLOCK_SKEW_S

Kind: TypeAlias = Literal["member", "claim", "result"]

FRESH_S: Final = float(CLOCK_SKEW_S)
"""The maximum age of a heartbeat in seconds, and how far it may be ahead of the local clock."""
_PROTOCOL: Final = 6
"""The version of what services and workers write for each other. Members with another version ignore it."""
_SIGNS_OF_LIFE: Final[frozenset[Kind]] = frozenset({"member", "claim"})
_SEAL: Final = "seal"
_SEAL_CHARACTERS: Final = 200
_MAX_REFUSED: Final = 1024

_log = structlog.get_logger()


def generation() -> str:
    """The compiler's build and the protocol: workers of another generation do not see its orders."""
    return f"{build().build_id[:16]}.{_PROTOCOL}"


class Statements:
    """Signs and verifies statements by the keys of `notary`. Verifying needs no private key."""

    def __init__(self, notary: Notary) -> None:
        self._notary = notary
        self._refused: set[tuple[str, str]] = set()

    def signed(self, kind: Kind, about: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
        """A signed record of `content` with the current time. UnavailableError when the key cannot be used."""
        stated = {**content, "at": clock.time()}
        return {**stated, _SEAL: self._notary.seal(_sealed(kind, about, stated))}

    def believed(
        self,
        kind: Kind,
        about: Mapping[str, Any],
        path: str,
        record: Mapping[str, Any] | None,
        *,
        at_any_time: bool = False,
    ) -> dict[str, Any] | None:
        """The content of the record at `path` about this subject, with its time as `at`; None when it is not valid.

        A heartbeat must be recent, except with `at_any_time`. A refused record is counted and logged only once.
        """
        if record is None:
            return None
        stated = _stated(record)
        reason = self._doubt(kind, about, record, None if at_any_time else clock.time())
        if reason is None:
            return stated
        met = path, repr(record.get(_SEAL))[:_SEAL_CHARACTERS]
        if met not in self._refused:
            if len(self._refused) >= _MAX_REFUSED:
                self._refused.clear()
            self._refused.add(met)
            FARM_REFUSED.labels(kind).inc()
            _log.error("a file of the farm is not verified", kind=kind, path=path, reason=reason)
        return None

    def has_lived(self, kind: Kind, about: Mapping[str, Any], record: Mapping[str, Any] | None, written: float) -> bool:
        """Whether a record of a lost member is left: valid when `written`, in seconds since the epoch, too old now."""
        if record is None or self._doubt(kind, about, record, written) is not None:
            return False
        return clock.time() - _stated(record)["at"] > FRESH_S

    def _doubt(self, kind: Kind, about: Mapping[str, Any], record: Mapping[str, Any], now: float | None) -> str | None:
        stated, seal = _stated(record), record.get(_SEAL)
        if seal is None:
            return "unsigned"
        if not self._notary.vouches(_sealed(kind, about, stated), seal):
            return "no valid signature by a key that is trusted"
        is_old = now is not None and kind in _SIGNS_OF_LIFE and abs(now - stated["at"]) > FRESH_S
        return "too old, or clocks disagree" if is_old else None


def _stated(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != _SEAL}


def _sealed(kind: Kind, about: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """The content that is signed. Nothing else that is sealed has these top-level names."""
    return {"farm": kind, "about": dict(about), "stated": dict(stated)}
