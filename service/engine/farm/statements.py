"""What workers state in a farm: signed with their key, and bound to what it is about.

Whoever can write to the store, and has no worker's key, can put nothing there that is believed: not a statement of its
own, not one that a worker made about something else, and of what lives, not one that is old.
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
"""How old a sign of life may be, or how far ahead of the clock here."""
_PROTOCOL: Final = 6
"""Changes with what services and workers write for one another, of which those before understand nothing."""
_SIGNS_OF_LIFE: Final[frozenset[Kind]] = frozenset({"member", "claim"})
_SEAL: Final = "seal"
_SEAL_CHARACTERS: Final = 200
_MAX_REFUSED: Final = 1024

_log = structlog.get_logger()


def generation() -> str:
    """The compiler's build and the protocol: workers of another generation do not see its orders."""
    return f"{build().build_id[:16]}.{_PROTOCOL}"


class Statements:
    """Signed, and believed, by the keys of `notary`. Who only believes needs no private key."""

    def __init__(self, notary: Notary) -> None:
        self._notary = notary
        self._refused: set[tuple[str, str]] = set()

    def signed(self, kind: Kind, about: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
        """The record with which a worker states `content` now. UnavailableError when its key cannot be used."""
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
        """What the record at `path` states about this, and `at` which time; None when there is none to be believed.

        A sign of life has to be fresh, unless it may have been stated `at_any_time`.
        What is refused is counted and logged once, however often it is met; it may be believed when its key is known.
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
        """Whether a record, in a file that was last `written` then, is what somebody left behind who is no more.

        It was to be believed at that time, and is too old now.
        """
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
    """What the signature is over. No other seal of a key has these names at its top."""
    return {"farm": kind, "about": dict(about), "stated": dict(stated)}
